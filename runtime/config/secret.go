package config

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a credential that prints as [redacted], however it is printed. Secrets compare with ==; the zero
// Secret is none.
type Secret struct{ value string }

const redacted = "[redacted]"

// NewSecret wraps a credential.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal is the one way to the credential.
func (s Secret) Reveal() string { return s.value }

// IsZero tells whether there is no credential.
func (s Secret) IsZero() bool { return s.value == "" }

// String, GoString, Format, MarshalJSON, MarshalText and LogValue hide the credential.

func (s Secret) String() string               { return redacted }
func (s Secret) GoString() string             { return redacted }
func (s Secret) Format(f fmt.State, _ rune)   { io.WriteString(f, redacted) }
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }
