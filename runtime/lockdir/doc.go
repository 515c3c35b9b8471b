// Package lockdir is a folder on disk that one process at a time may write in, and whose names are durable.
//
// It guarantees that while a Lock is open nobody else opens one on the same folder, in this process or another on
// this machine, and that it ends with the process, however that ends. It does not guarantee anything against programs
// that do not ask for it, nor across machines that share a folder over a network.
package lockdir
