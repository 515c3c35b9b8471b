package envelope

// Message is what goes out for one event. Its slices belong to whoever rendered it and are valid until
// that owner reuses its arena.
type Message struct {
	ID      ID     // of the event it was rendered from
	Copy    int    // 0 for the first message of an event, N for the N-th extra one of a fan-out
	Subject []byte // concrete, already checked by CheckSubject
	Headers []byte // "Name: value\r\n" lines, already checked by CheckHeaders; never a Nats- name
	Payload []byte
}
