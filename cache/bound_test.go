package cache

import (
	"fmt"
	"sync"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
)

// The tier is never above its capacity by more than what the callers hold in their hands: those who bring it wait until there is room.
func TestMemoryIsBoundedWhileItIsFilled(t *testing.T) {
	for _, size := range []int{0, 100, 4 << 10, 128 << 10, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			const capacity, writers = 8 << 20, 8
			m, err := newMemory(Options{Memory: capacity})
			if err != nil {
				t.Fatal(err)
			}
			data := make([]byte, size)
			fresh := func(key string) *item {
				h := newHead(blob.Info{Key: key, Size: int64(size), Version: "1"}, 1, 1)
				h.obj.Data, h.whole = data, true
				return h
			}
			each := weightUnit * int64(weigh(0, fresh("0/00000")))
			bound := capacity + writers*each
			rounds := max(100, 2*capacity/each/writers)
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for i := range rounds {
						key := fmt.Sprintf("%d/%05d", w, i)
						m.put(key, fresh(key))
						if now := m.bytes(); now > bound {
							t.Errorf("%d bytes in a tier of %d: more than the %d of as many items as there are writers", now, int64(capacity), bound-capacity)
							return
						}
					}
				})
			}
			wg.Wait()
			if now := m.bytes(); now > capacity {
				t.Errorf("%d bytes in a tier of %d, and nobody brings more", now, int64(capacity))
			}
			m.cache.CleanUp()
			held := int64(0)
			for s, it := range m.cache.All() {
				held += int64(weigh(s, it)) * weightUnit
			}
			if now := m.bytes(); now != held || now != int64(m.cache.WeightedSize())*weightUnit {
				t.Errorf("%d bytes are counted; there are %d, and otter counts %d", now, held, m.cache.WeightedSize()*weightUnit)
			}
		})
	}
}
