package wasm

import "errors"

// Stage is a step between a module's bytes and an instance that is ready.
type Stage string

// The stages, in their order. Admission answers *admit.Error instead.
const (
	StageLimits      Stage = "check limits"
	StageCompile     Stage = "compile"
	StageInstantiate Stage = "instantiate"
	StageInitialize  Stage = "initialize"
	StageConfig      Stage = "configure"
	StageSnapshot    Stage = "take snapshot"
)

// LoadError says at which stage a module could not be made ready. Err may be a *Fault when the guest's own code was
// running.
type LoadError struct {
	Stage Stage
	Code  uint32 // what edge_v1_config answered, when it answered something
	Err   error
}

func (e *LoadError) Error() string { return string(e.Stage) + " module: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// ResetError says that an instance could not be put back to its snapshot. It does not unwrap: a *Fault among its
// causes is the module's own start failing anew, and belongs to no event.
type ResetError struct{ Cause error }

func (e *ResetError) Error() string { return "reset module: " + e.Cause.Error() }

var errClosed = errors.New("the instance is closed")
