// Package quickstart holds the repository's first example: a configuration, a real recording and the program that
// made it. README.md explains it.
package quickstart
