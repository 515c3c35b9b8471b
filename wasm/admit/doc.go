// Package admit decides whether a Wasm module may come near the compiler, and builds meters into it.
//
// A module is untrusted bytes. Some modules of 15 to 42 bytes announce billions of items and make a compiler
// allocate until the process is killed; others of 30 KB keep it busy for 20 seconds; and once it runs, nothing in
// native code stops an endless loop. Rewrite answers all three: it reads the whole binary strictly, refuses what is
// too large, malformed or not part of the guest interface, and returns a binary that counts its own work.
//
// # What is guaranteed
//
//   - Every count is held against the bytes that are left and against a limit before anything is allocated by it.
//   - Sections are known, in order, there once, and end where they say. Custom sections are dropped.
//   - Every index is checked against the original's counts. The rewrite adds types, functions, globals and locals
//     behind the original's; an index that points there would otherwise become legal and hand the guest its meter.
//   - Imports are functions of an allowed list with their exact types; the exports of the guest interface are there
//     with theirs; no name begins with "edge_meter".
//   - One memory of the module's own, at most one table of a fixed size, no threads, exceptions, tail calls,
//     64-bit memories, typed references, extended constants. Core Wasm 2.0 otherwise, vectors included.
//   - Bodies, nesting, blocks, branch tables and locals are bounded, also in the products that make compilers slow.
//   - The rewritten module computes what the original says, also where the compiler is known to err; it counts exactly,
//     deterministically and in every engine alike, and asks the host at the latest some 4 million instructions after
//     its fuel is used up; nested calls ask the host when their estimated size passes the limit.
//
// # What is not
//
// Of the compiler's errors only the one below is kept away. Another report against it is open (wazero issue 2516, a
// guest in Rust that formats minutes wrongly); whether it is the same error is not known. Operand types are not
// checked: the compiler does that, on the rewritten module, and may still refuse it. A unit is
// an instruction, not a time: one that misses every cache is dearer than one that does not. That an admitted module
// compiles fast is made likely here, not certain. The stack is estimated, not measured.
//
// # The meter
//
// One unit is one instruction of the binary ("end" and "else" are punctuation, "loop" counts in each round). Bulk
// instructions cost a unit more per 32 bytes or table entries, growing memory 1,024 per page and at least that. A counter of units
// left lives in a local variable while a function runs, and in a global between functions:
//
//	original                     rewritten
//
//	(func (param i32)            (func (param i32) (local $f i64) (local $t i32)
//	                               depth += frame; if depth > limit { deep(depth) }    only if it calls something
//	                               $f = fuel; if $f < 0 { $f = refill($f) }
//	                               block                         every way out leads to this block's end
//	  loop                           loop
//	                                   if $f < 0 { $f = refill($f) }
//	    local.get 0                    local.get 0
//	                                   fuel = $f - 3             loop, local.get, call
//	    call 4                         call 6                    two imports were added before it
//	                                   $f = fuel
//	    local.get 0                    local.get 0
//	                                   $f -= 2                   local.get, br_if
//	    br_if 0                        br_if 0
//	  end                            end
//	                               end
//	                               depth -= frame; fuel = $f
//	)                            )
//
// Each basic block pays for itself where it ends; the sign is tested only where something can repeat, at loops and
// at function entries, and at bulk instructions before they begin. Since a body is bounded, that is often enough: a
// tree of calls without any loop is stopped by the entries. Functions of at most 64 instructions that neither call
// nor loop nor move in bulk pay straight into the global and are not tested.
//
// # What the compiler gets wrong
//
// The compiler joins the result of an "and", its order against zero and the branch that follows into one instruction,
// and is wrong when the zero stands on the left. It would compute something else than the guest says, and nobody
// would see a fault. Where an order takes a mask, the rewrite adds what keeps them apart:
//
//	i32.const 0                    i32.const 0
//	local.get 0                    local.get 0
//	local.get 1                    local.get 1
//	i32.and                        i32.and
//	i32.lt_s                       i32.lt_s
//	                               i32.const 0
//	                               i32.ne
//	if                             if
//
// It costs the guest no units.
//
// # The whole
//
// A start function runs like any other, on Limits.StartFuel: the host must be ready for refill while it
// instantiates.
//
// What the rewrite adds, as a picture of the binary; the original's parts keep their bytes except for the indices of
// functions, which move by two behind the imports:
//
//	00 61 73 6d 01 00 00 00
//	type      original | results of functions with several | (i64)->i64 | (i32)->()
//	import    original | edge_meter.refill | edge_meter.deep
//	function  original
//	table     original, maximum capped
//	memory    original, maximum capped
//	global    original | fuel: mut i64 = StartFuel | depth: mut i32 = 0
//	export    original | edge_meter.g0 ... for each mutable global | edge_meter.fuel | edge_meter.depth
//	start, element, data count: original
//	code      each body: size, locals + (i64) + (i32), instructions with the meter between them
//	data      original
package admit
