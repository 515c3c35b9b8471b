package admit

// PageBytes is the size of a page of Wasm memory.
const PageBytes = 65536

// Limits are the bounds of one module. Each is meant: a zero allows nothing of its kind, and none has an "off".
// Begin with DefaultLimits and change what differs.
//
// The defaults come from measurements of what makes the compiler explode (20,000 nested loops take 22 s, a branch
// table of 100,000 entries 6 s, 2,000 loops over 2,000 locals 15 s) held against the largest shapes that real
// compilers were seen to make: a body of 29 KB, nesting 549, a branch table of 964 entries, 799 blocks and 93
// locals in one function, 2,132 functions, 6,228 table entries.
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
	Blocks        int // blocks, loops and ifs in one function
	BranchEntries int // entries of all branch tables of one function
	Locals        int // parameters and locals of one function
	BlockLocals   int // sum over the blocks of one function of its locals and the block's parameters and results
	TotalLocals   int // parameters and locals of all functions together

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
		Blocks:        4_096,
		BranchEntries: 4_096,
		Locals:        1_000,
		BlockLocals:   1 << 18,
		TotalLocals:   1 << 20,

		StartFuel: 1 << 20, // about 0.3 ms
	}
}
