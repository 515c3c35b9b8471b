package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// maxExcerpt is the widest part of a line that an error shows, in characters. Lines over maxShown bytes are not
// shown at all: nobody reads them, and looking for secrets in them takes time.
const (
	maxExcerpt = 100
	maxShown   = 4096
)

// excerpt shows the line at a place with a caret under the column. lines are the file's.
func excerpt(lines []string, at pos) string {
	if at.line < 1 || at.line > len(lines) || len(lines[at.line-1]) > maxShown {
		return ""
	}
	line := []rune(hideSecrets(lines[at.line-1]))
	caret := min(max(at.column-1, 0), len(line))
	if from := caret - maxExcerpt*3/4; from > 0 {
		line = append([]rune("..."), line[from:]...)
		caret -= from - 3
	}
	if len(line) > maxExcerpt {
		line = append(line[:maxExcerpt:maxExcerpt], []rune("...")...)
	}
	pad := make([]rune, caret)
	for i, r := range line {
		if r != '\t' && !unicode.IsPrint(r) {
			line[i] = '?'
		}
		if i < caret {
			pad[i] = ' '
			if r == '\t' {
				pad[i] = '\t'
			}
		}
	}
	no := fmt.Sprintf("%4d", at.line)
	return fmt.Sprintf("%s | %s\n%s | %s^", no, string(line), strings.Repeat(" ", len(no)), string(pad))
}

var (
	keyPattern      = regexp.MustCompile(`["']?([A-Za-z_][\w.-]*)["']?[ \t]*:(?:[ \t]+|$)`)
	userInfoPattern = regexp.MustCompile(`://[^/\s]*@`)
	onlyReference   = regexp.MustCompile(`^["']?\$\{(env:\w+|file:[^}]*)\}["']?[ \t,}]*$`)
	secretWords     = []string{"tok", "pass", "pwd", "secret", "cred", "key", "seed", "auth"}
)

// hideSecrets cuts a line of the file behind the first key that looks as if its value were a secret, unless the
// value is only a reference, and takes user and password out of addresses. The key may be misspelt: that is why the
// line is shown.
func hideSecrets(line string) string {
	line = hideUser(line)
	for _, m := range keyPattern.FindAllStringSubmatchIndex(line, -1) {
		if m[1] < len(line) && secretName(line[m[2]:m[3]]) && !onlyReference.MatchString(line[m[1]:]) {
			return line[:m[1]] + redacted
		}
	}
	return line
}

// hideUser takes user and password out of the addresses in a text.
func hideUser(text string) string {
	return userInfoPattern.ReplaceAllString(text, "://"+redacted+"@")
}

func secretName(key string) bool {
	key = strings.ToLower(key)
	for _, w := range secretWords {
		if strings.Contains(key, w) {
			return true
		}
	}
	return distance(key, "token") <= 2 || distance(key, "password") <= 3
}
