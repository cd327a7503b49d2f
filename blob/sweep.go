package blob

// OpSweep is the Op of the errors of a store's Sweep.
const OpSweep = "sweep"

// SweepResult says what became of the uploads that a Sweep found. An upload is named "key upload-id".
type SweepResult struct {
	Aborted []string
	Failed  []string // could not be aborted; the next Sweep finds them again
	Kept    int      // younger than asked for, or this store's own and in progress
}
