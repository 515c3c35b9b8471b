package envelope

import "fmt"

// Reason is the stable code of a reject: it is stored in quarantine and counted in metrics, so a code never
// changes its meaning. It is short, lower case, and safe to use as a label.
type Reason string

// The reasons this package gives. Other packages add their own.
const (
	NotJSON         Reason = "not_json"            // the record is not one valid JSON text
	NotAnObject     Reason = "not_an_object"       // valid JSON, but not an object
	NotARecord      Reason = "not_a_record"        // a raw event where a record is needed
	NotText         Reason = "not_text"            // null, a list or an object where a text is needed
	InvalidUTF8     Reason = "invalid_utf8"        // broken UTF-8, or half of a surrogate pair
	TooDeep         Reason = "too_deep"            // more than MaxNesting containers inside one another
	TooLarge        Reason = "too_large"           // the result would pass the caller's limit
	EmptyToken      Reason = "empty_subject_token" // an empty subject, or two dots with nothing between them
	BadToken        Reason = "bad_subject_token"   // a wildcard, dot, white space or control character in a token
	ReservedSubject Reason = "reserved_subject"    // under $ or _INBOX
	SubjectTooLong  Reason = "subject_too_long"    // more than MaxSubject bytes
	BadHeader       Reason = "bad_header"          // not a "Name: value" line of printable characters
	ReservedHeader  Reason = "reserved_header"     // a Nats- name: it commands the server
	HeadersTooLarge Reason = "headers_too_large"   // too many headers or bytes
)

// RejectError says that one event can not be rendered. It is permanent: the same event fails alike every time.
type RejectError struct {
	Reason Reason
	Detail string // for people: where and what, without the event's values unless they are needed to find the mistake
}

func (e *RejectError) Error() string {
	if e.Detail == "" {
		return "reject event: " + string(e.Reason)
	}
	return "reject event: " + string(e.Reason) + ": " + e.Detail
}

func reject(r Reason, format string, args ...any) *RejectError {
	return &RejectError{Reason: r, Detail: fmt.Sprintf(format, args...)}
}
