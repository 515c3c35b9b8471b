package admit

// Function is a function that a module may import. Params and Results are value types by their codes in the
// binary format (0x7f i32, 0x7e i64), one byte each.
type Function struct {
	Module, Name    string
	Params, Results string
}

const (
	hostModule = "edge"
	wasiModule = "wasi_snapshot_preview1"

	i32 = "\x7f"
	i64 = "\x7e"
)

// Allowed returns the functions that a module may import: edge.log, and the functions of WASI preview 1 that
// language runtimes name even when a program never calls them. That a function may be imported says nothing of
// what it does: the host serves a few and refuses the rest at run time. Sockets are not in the list. The result
// is the caller's.
func Allowed() []Function {
	out := []Function{{hostModule, "log", i32 + i32 + i32, ""}}
	add := func(name, params string) {
		result := i32
		if name == "proc_exit" {
			result = ""
		}
		out = append(out, Function{wasiModule, name, params, result})
	}
	const ii, iii, iiii = i32 + i32, i32 + i32 + i32, i32 + i32 + i32 + i32
	add("args_get", ii)
	add("args_sizes_get", ii)
	add("environ_get", ii)
	add("environ_sizes_get", ii)
	add("clock_res_get", ii)
	add("clock_time_get", i32+i64+i32)
	add("fd_advise", i32+i64+i64+i32)
	add("fd_allocate", i32+i64+i64)
	add("fd_close", i32)
	add("fd_datasync", i32)
	add("fd_fdstat_get", ii)
	add("fd_fdstat_set_flags", ii)
	add("fd_fdstat_set_rights", i32+i64+i64)
	add("fd_filestat_get", ii)
	add("fd_filestat_set_size", i32+i64)
	add("fd_filestat_set_times", i32+i64+i64+i32)
	add("fd_pread", iii+i64+i32)
	add("fd_prestat_get", ii)
	add("fd_prestat_dir_name", iii)
	add("fd_pwrite", iii+i64+i32)
	add("fd_read", iiii)
	add("fd_readdir", iii+i64+i32)
	add("fd_renumber", ii)
	add("fd_seek", i32+i64+ii)
	add("fd_sync", i32)
	add("fd_tell", ii)
	add("fd_write", iiii)
	add("path_create_directory", iii)
	add("path_filestat_get", iiii+i32)
	add("path_filestat_set_times", iiii+i64+i64+i32)
	add("path_link", iiii+iii)
	add("path_open", iiii+i32+i64+i64+ii)
	add("path_readlink", iiii+ii)
	add("path_remove_directory", iii)
	add("path_rename", iiii+ii)
	add("path_symlink", iiii+i32)
	add("path_unlink_file", iii)
	add("poll_oneoff", iiii)
	add("proc_exit", i32)
	add("proc_raise", i32)
	add("random_get", ii)
	add("sched_yield", "")
	return out
}
