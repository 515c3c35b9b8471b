// Package config reads the agent's configuration: one YAML file, checked whole, as a value that nobody changes.
//
// It guarantees:
//
//   - What Load returns is complete: every default is filled in, every relative path is resolved against the
//     file's folder, every reference such as ${env:NAME} is replaced, every name that one part uses for another
//     exists.
//   - All mistakes are reported at once, as *Errors, each with file, line, column, the line itself and what to do
//     next. An unknown or repeated key is a mistake, a value is never converted silently, and no limit has an "off".
//   - What would lose events without a word is refused: two sinks that send a dataset to one stream of one server,
//     known by its address. What is allowed and probably not meant is in Config.Warnings.
//   - Secrets do not leave it by accident: Secret prints as [redacted] in every way that Go prints a value, a value
//     that came out of a reference is never repeated in an error, and a quoted line is cut behind a key that looks
//     like a secret's.
//   - A hostile file costs bounded time and memory: 1 MiB, 20,000 tokens, 64 levels. Anchors, aliases, merge keys,
//     tags and several documents are refused with their place; a configuration is to be read where it stands.
//
// It does not guarantee that what a path names can be used (the files of inputs and modules must exist and be regular files, that is all),
// nor that a server answers. It writes nothing and starts no goroutine.
//
// # References
//
//	${env:NAME}            the environment variable, which must be set
//	${env:NAME:-default}   the default if it is not set or empty; it ends at the first closing brace
//	${file:PATH}           the file's text without line breaks at its end; at most 64 KiB
//	$${                    the two characters ${
//
// They stand inside values, never in keys, and are replaced once: what they bring in is not looked at again. A
// number, duration, size or bool may come out of a reference. Inside [ ] and { } YAML needs quotes around them.
package config
