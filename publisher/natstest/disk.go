package natstest

// LimitFileSize makes every write of the running server beyond so many bytes of one file fail, as on a disk without
// room: a stream with one replica stores nothing more, tells its publishers nothing, and goes on only after Restart
// (which starts without the limit). It needs Linux, and no rights. Two things differ from a full disk: the error is
// EFBIG ("file too large") where a disk says ENOSPC, whose text makes a server with replicated streams turn JetStream
// off; and small files still find room. The server's log is bounded too: keep the limit above 64 KiB.
func (s *Server) LimitFileSize(bytes int64) {
	s.t.Helper()
	if bytes < 0 {
		s.t.Fatalf("natstest: limit file size to %d bytes", bytes)
	}
	s.limit(bytes)
}

// UnlimitFileSize lets the server write again. A stream that has met the limit needs Restart all the same.
func (s *Server) UnlimitFileSize() {
	s.t.Helper()
	s.limit(-1)
}

func (s *Server) limit(bytes int64) {
	s.t.Helper()
	if err := limitFileSize(s.own("limit file size").cmd.Process, bytes); err != nil {
		s.t.Fatalf("natstest: limit the file size of nats-server: %v", err)
	}
}
