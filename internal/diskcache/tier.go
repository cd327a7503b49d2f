package diskcache

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

const (
	defaultQueue    = 64 << 20
	defaultSumBlock = 4 << 10
	writers         = 2

	firstProbe = time.Second // how long the tier stays off after a first fault; then twice as long each time
	lastProbe  = 5 * time.Minute
)

// MinSize is the smallest capacity, and LargestEntry the largest entry in bytes that the default write queue takes.
const (
	MinSize      = 64 << 10
	LargestEntry = defaultQueue - minHeader

	// maxSize is no limit at all, and leaves room above it for sums of sizes: what is on disk, what is queued, the share of the queue.
	maxSize = 1 << 60
)

// Options tune a tier.
type Options struct {
	Size     int64            // bytes of disk that entries may take, whole file-system blocks and headers counted; at least 64 KiB, and above 1 EiB as 1 EiB
	queue    int64            // bytes waiting to be written; 0: 64 MiB
	sumBlock int              // bytes under one checksum, a power of two from 512 to 1 MiB; 0: 4 KiB
	Logger   *slog.Logger     // nil: nothing is logged
	now      func() time.Time // nil: time.Now

	// For tests.
	Fault func(op, name string) error // called before each operation on the file system
	boot  func() string               // names the run of the kernel; nil: the system's
}

// Stats count what the disk tier did since it was opened, and say how it is.
type Stats struct {
	Hits    int64 // reads answered
	Misses  int64 // reads not answered, for whatever reason
	Bytes   int64 // of disk taken by entries, headers and file-system blocks counted
	Entries int64 // files

	Reads     int64 // system calls that read of entries, headers left out
	ReadBytes int64 // their bytes: what was asked for, what lay around it in checksum blocks and between ranges, and blocks read for memory

	Fills        int64 // entries written
	SkippedFills int64 // entries not written: queue full, tier off or full, too large, or no longer wanted when their turn came
	Evictions    int64 // entries removed to make room
	QueuedBytes  int64 // waiting to be written

	Damaged  int64 // entries dropped because they were not what they should be, or could not be read
	Foreign  int64 // names in the tier's directories that are not the tier's; they are left alone
	Junk     int64 // temporary files of crashed processes removed
	Faults   int64 // operations of the file system that failed and should not
	TimesOff int64 // how often the tier turned itself off
	Resets   int64 // how often it gave up all entries because it could no longer vouch for them

	Off     bool // nothing is written until the next probe finds the disk well
	Indexed bool // the entries of earlier processes have all been found
}

// Tier is one directory of entries. Make it with Open.
type Tier struct {
	path    string
	o       Options
	fs      fileSystem
	log     *slog.Logger
	session uint64        // random; begins the names of this process' temporary files
	seq     atomic.Uint64 // from a random start: makes names unique

	gen     atomic.Pointer[generation] // nil: nothing is found and nothing kept
	handles handleCache
	heat    heatMap

	// attach serialises what replaces the generation. It is held during system calls; nobody takes it on the way to a hit.
	attach struct {
		sync.Mutex
		root *os.Root // the directory; nil after it was found deleted
		lock *os.File
		had  bool // the generation on record must not be used again

		littered bool // there may be other generations in the directory, or temporary files of others
	}

	// drops is held for reading by drop, and for writing when close records that all drops are done.
	drops sync.RWMutex

	queue     writeQueue
	condemned struct {
		sync.Mutex
		runs   []condemnedRun
		serial sync.Mutex // held while their files are removed
	}
	health healthState
	n      counters

	wake    chan struct{} // one token: there is work for maintain
	stop    chan struct{} // closed when the tier closes
	workers sync.WaitGroup
	others  sync.WaitGroup
	once    sync.Once
}

type counters struct {
	hits, misses, reads, readBytes, fills, skipped, evictions, damaged, foreign, junk, faults, timesOff, resets atomic.Int64
}

// Open opens the tier in directory dir, which it makes if there is none. Entries are served at once and found in the background.
//
// Errors: blob.ErrInvalidOption; blob.ErrConflict if another process or another tier of this one has the directory;
// blob.ErrUnsupported where the system lacks what it takes; what the system says of a directory that cannot be used. A disk that is
// full, read-only or broken is no error: the tier starts off and looks again later.
func Open(dir string, o Options) (*Tier, error) {
	if err := o.check(dir); err != nil {
		return nil, err
	}
	d := &Tier{path: dir, o: o, fs: fileSystem{fault: o.Fault}, log: o.Logger, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	d.queue.init(o.queue)
	d.session, d.health.now = random64(), o.now
	d.seq.Store(random64())
	d.attach.Lock()
	err := d.takeDir()
	d.attach.Unlock()
	if err != nil {
		if !isDiskFault(err) {
			return nil, fmt.Errorf("cache: open the disk tier: %w", err)
		}
		d.turnOff("open", err)
	}
	for i := range writers {
		d.workers.Go(func() { d.writeLoop(i) })
	}
	d.poke() // to sweep
	d.others.Go(d.maintain)
	return d, nil
}

func (o *Options) check(dir string) error {
	if o.queue == 0 {
		o.queue = defaultQueue
	}
	if o.sumBlock == 0 {
		o.sumBlock = defaultSumBlock
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.boot == nil {
		o.boot = bootID
	}
	o.Size = min(o.Size, maxSize)
	switch {
	case !supported:
		return fmt.Errorf("%w: a disk cache on this system", blob.ErrUnsupported)
	case dir == "":
		return fmt.Errorf("%w: empty cache directory", blob.ErrInvalidOption)
	case o.Size < MinSize:
		return fmt.Errorf("%w: a disk cache of %d bytes, at least %d", blob.ErrInvalidOption, o.Size, MinSize)
	case o.queue < 0:
		return fmt.Errorf("%w: the write queue is negative: %d", blob.ErrInvalidOption, o.queue)
	case !validSumBlock(o.sumBlock):
		return fmt.Errorf("%w: checksum block of %d bytes", blob.ErrInvalidOption, o.sumBlock)
	}
	return nil
}

func random64() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

func (d *Tier) tempName() string {
	return fmt.Sprintf("%s%016x-%x", tempPrefix, d.session, d.seq.Add(1))
}

// poke tells maintain that there is work.
func (d *Tier) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Close writes what is queued, or gives it up when ctx ends, and records that the tier was closed in order, which lets its entries
// survive a crash of the machine. Reads miss from then on. The caller must be done with drop. The second call does nothing.
//
// The error says that the disk refused the record; entries are then found again only by a process that starts before the machine does.
func (d *Tier) Close(ctx context.Context) (err error) {
	d.once.Do(func() {
		d.queue.close()
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.workers.Wait()
		}()
		select {
		case <-done:
		case <-ctx.Done():
			d.queue.abandon() // each writer ends what it is writing
			<-done
		}
		close(d.stop)
		d.others.Wait()
		err = d.detach()
	})
	return err
}

// Stats returns the counters, read one by one while calls go on.
func (d *Tier) Stats() Stats {
	s := Stats{
		Hits: d.n.hits.Load(), Misses: d.n.misses.Load(), Reads: d.n.reads.Load(), ReadBytes: d.n.readBytes.Load(),
		Fills: d.n.fills.Load(), SkippedFills: d.n.skipped.Load(), Evictions: d.n.evictions.Load(),
		QueuedBytes: d.queue.size(),
		Damaged:     d.n.damaged.Load(), Foreign: d.n.foreign.Load(), Junk: d.n.junk.Load(), Faults: d.n.faults.Load(),
		TimesOff: d.n.timesOff.Load(), Resets: d.n.resets.Load(),
		Off: d.health.off.Load(),
	}
	if g := d.gen.Load(); g != nil {
		s.Bytes, s.Entries = g.sieve.size()
		s.Foreign += g.foreign.Load()
		s.Indexed = g.indexed.Load()
	}
	return s
}
