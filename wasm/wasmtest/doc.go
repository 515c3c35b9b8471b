// Package wasmtest builds small Wasm modules in plain Go, for tests. No tool and no file is needed.
//
// A module is made by a Builder, whose methods return the indices they hand out; the bodies of functions are Code,
// strings of instruction bytes that are concatenated. Ready-made edge_v1 guests are functions that return a
// finished module: Echo and its variants behave, Trap, Spin, Recurse, ExpTree and others misbehave. A guest whose
// name ends in X misbehaves only at events whose data begins with the byte 'X', so that a test can send the guilty
// and the innocent in one batch. Guest builds further ones from a piece of code that runs once per event.
//
// The package guarantees that its guests are valid modules. It does not check what a test puts into a Builder:
// invalid modules are half of its use. Sections made by Section and joined by Module allow any bytes at all.
package wasmtest
