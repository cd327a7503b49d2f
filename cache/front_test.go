package cache

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

func wholeItem(key string, seq uint64) *item {
	h := newHead(blob.Info{Key: key, Version: fmt.Sprint(seq), Size: 4}, seq, 0)
	h.obj.Data, h.whole = []byte("data"), true
	return h
}

// However an item leaves the tier, the front serves it no more and keeps it from no garbage collector.
func TestWhatLeftTheTierIsNotServedInFrontOfIt(t *testing.T) {
	for name, leave := range map[string]func(m *memory, it *item){
		"dropped":  func(m *memory, _ *item) { m.drop(key) },
		"replaced": func(m *memory, _ *item) { m.put(key, wholeItem(key, 2)) },
		"cleared":  func(m *memory, _ *item) { m.clear() },
		"evicted": func(m *memory, it *item) {
			for i := 0; !it.gone.Load() && i < 1_000_000; i++ {
				m.put(fmt.Sprint(i), wholeItem(fmt.Sprint(i), 1))
				m.find(m.named(fmt.Sprint(i)), fmt.Sprint(i)) // or the newcomer is turned away
				m.cache.CleanUp()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := newMemory(Options{Memory: 64 << 10})
			if err != nil {
				t.Fatal(err)
			}
			it, s := wholeItem(key, 1), m.named(key)
			m.put(key, it)
			if m.front.find(s, key) != nil {
				t.Fatal("in front before it was used")
			}
			m.used(key)
			if m.front.find(s, key) != it {
				t.Fatal("not in front")
			}
			leave(m, it)
			if m.hot(key) == it || m.front.find(s, key) != nil {
				t.Error("served")
			}
			if m.front.place(s).item.Load() != nil {
				t.Error("kept")
			}
			// As by someone who found it in otter before it left.
			m.front.enter(s, it)
			if m.front.place(s).item.Load() != nil {
				t.Error("kept once more")
			}
			// As by someone who has got no further than that.
			m.front.place(s).item.Store(it)
			if m.hot(key) == it {
				t.Error("served once more")
			}
		})
	}
}

// The item of another key in the same place, and a place that is out of step with its item, are misses.
func TestPlacesInFrontAreShared(t *testing.T) {
	f := new(front)
	a, b := wholeItem("a", 1), wholeItem("b", 1)
	const s, same = slot(5), slot(5 + len(f))
	f.enter(s, a)
	f.enter(same, b)
	if f.find(s, "a") != nil || f.find(same, "b") != b {
		t.Error("the second is not in the place of the first")
	}
	f.place(s).slot.Store(uint64(s))
	if f.find(s, "a") != nil || f.find(same, "b") != nil {
		t.Error("served by the place and not by the item")
	}
	f.enter(s, a)
	f.leave(same, b) // of which the place is no longer
	if f.find(s, "a") != a {
		t.Error("the one took the other along")
	}
}

// A read that begins after a drop has returned never has what was dropped.
func TestReadersInFrontAreNeverBehindADrop(t *testing.T) {
	m, err := newMemory(Options{Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 20_000
	var floor atomic.Uint64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				at := floor.Load()
				if at == rounds {
					return
				}
				if it := m.hot(key); it != nil && it.seq < at {
					t.Errorf("found item %d after %d was dropped", it.seq, at-1)
					return
				}
				m.used(key)
			}
		})
	}
	for seq := range uint64(rounds) {
		m.put(key, wholeItem(key, seq))
		m.used(key)
		m.drop(key)
		floor.Store(seq + 1)
	}
	wg.Wait()
	if m.front.place(m.named(key)).item.Load() != nil {
		t.Error("the last one was kept")
	}
}

// Otter learns of hits in front by the ones that are picked: of each key that is read in turn with others.
func TestEveryKeyOfACycleIsPicked(t *testing.T) {
	for _, keys := range []int{1, 2, 16, 17, 144, 987, 1000, 1024, 4096} {
		var c counters
		picked := make([]int, keys)
		const cycles = 20 * usesNoted
		for range cycles {
			for i := range picked {
				if c.hit(1) {
					picked[i]++
				}
			}
		}
		sum := 0
		for i, n := range picked {
			if sum += n; n == 0 {
				t.Errorf("%d of %d keys was never picked in %d cycles", i, keys, cycles)
				break
			}
		}
		if want := keys * cycles / usesNoted; sum < want*8/10-1 || sum > want*12/10+1 {
			t.Errorf("of %d keys %d hits were picked, want about %d", keys, sum, want)
		}
	}
}

// What is read often is answered in front of otter, whole and by range.
func TestHotObjectsComeToTheFront(t *testing.T) {
	c := over(t, memblob.New(nil), Options{})
	defer mustClose(t, c)
	set(t, c, key, "0123456789")
	get(t, c, key)
	m := c.memory
	if m.front.find(m.named(key), key) != nil {
		t.Error("in front after one read")
	}
	for range 10 * usesNoted {
		get(t, c, key)
	}
	if m.front.find(m.named(key), key) == nil {
		t.Error("not in front after many")
	}
	set(t, c, key, "abc")
	if got := get(t, c, key); got != "abc" {
		t.Errorf("got %q after it was written", got)
	}
}
