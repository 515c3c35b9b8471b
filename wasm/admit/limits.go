package admit

// PageBytes is the size of a page of Wasm memory.
const PageBytes = 65536

// Limits are the bounds of one module. Each is meant: a zero allows nothing of its kind, and none has an "off".
// Begin with DefaultLimits and change what differs.
//
// The defaults come from measurements of what makes the compiler explode (20,000 nested loops take 22 s, a branch
// table of 100,000 entries 6 s, 30,000 conditional branches 30 s, 4,000 loops under 12,000 operands 73 s) held
// against the largest shapes that real compilers were seen to make: a body of 29 KB, nesting 549, a branch table of
// 964 entries, 995 basic blocks and 93 locals in one function, 2,132 functions, 6,228 table entries. One function at
// its limits compiles in at most some 2 s, and a module of the worst ones in some 10 s and the time that its size
// takes anyway.
type Limits struct {
	ModuleBytes  int // the whole binary; also an upper bound for everything that is copied from it
	MemoryBytes  int // linear memory, rounded down to pages; a larger declared maximum is lowered, a larger minimum refused
	TableEntries int // entries of the one table
	StackBytes   int // estimated bytes of nested calls, checked while running; at most 1 GiB

	Types           int // function types
	Params, Results int // of one function type or block
	Imports         int // imported functions
	Functions       int // imported and own
	Globals         int
	Exports         int
	NameBytes       int // one name of an import or export
	Segments        int // data segments, and again element segments
	ElementEntries  int // entries of all element segments together

	BodyBytes     int // code of one function
	Nesting       int // blocks inside one another
	BranchEntries int // entries of all branch tables of one function
	Locals        int // parameters and locals of one function
	TotalLocals   int // parameters and locals of all functions together

	// What the compiler's time grows with. Blocks counts the basic blocks of one function: one for each block and
	// conditional branch, two for an if, three for a loop, four for a bulk instruction. BlockValues is the sum over these of
	// the locals and operands that exist there. BlockSquares is the sum over all functions of the square of Blocks.
	Blocks       int
	BlockValues  int
	BlockSquares int

	// StartFuel is the initial value of the fuel counter, in units: what a start function may spend before it asks
	// the host for more. It should be one slice.
	StartFuel int64

	// Allowed lists the functions that a module may import; nil means Allowed().
	Allowed []Function
}

// DefaultLimits returns the limits for a module that nobody has said anything special about.
func DefaultLimits() Limits {
	return Limits{
		ModuleBytes:  16 << 20,
		MemoryBytes:  16 << 20,
		TableEntries: 65_536,
		StackBytes:   1 << 20,

		Types:          10_000,
		Params:         1_000,
		Results:        64,
		Imports:        256,
		Functions:      50_000,
		Globals:        4_096,
		Exports:        4_096,
		NameBytes:      1_024,
		Segments:       65_536,
		ElementEntries: 1 << 18,

		BodyBytes:     128 << 10,
		Nesting:       1_024,
		BranchEntries: 4_096,
		Locals:        1_000,
		TotalLocals:   1 << 20,

		Blocks:       8_192,
		BlockValues:  1 << 18,
		BlockSquares: 1 << 28,

		StartFuel: 1 << 20, // about 0.3 ms
	}
}
