package config

import (
	"fmt"
	"strings"
)

// suggest ends a message about an unknown word: with the one known word it was probably meant to be, or with all
// of them if they are few.
func suggest(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		// Half of a short word is a different word.
		if d := distance(word, k); d < least && d*2 <= max(len(word), len(k)) {
			best, least = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf(" (did you mean %q?)", best)
	case len(known) == 0:
		return ""
	}
	return " (known here: " + strings.Join(known, ", ") + ")"
}

// distance is how many characters must be added, removed, replaced or swapped with their neighbour to make a into
// b. Words over 64 bytes are far from everything.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	var rows [3][65]int // the last two rows and the present one
	for j := range len(b) + 1 {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, last, row := &rows[(i+2)%3], &rows[i%3], &rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return rows[(len(a)+1)%3][len(b)]
}
