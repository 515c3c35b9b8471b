//go:build !race

package admit

const underRace = false
