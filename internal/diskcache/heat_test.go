package diskcache

import "testing"

// touches returns how many reads of n bytes buy a block.
func touches(t *heatMap, k heatKey, n, block, window int64) (count int) {
	for !t.touch(k, n, block, window) {
		count++
	}
	return count + 1
}

func TestBlocksAreBoughtWhenTheRentHasCostAsMuch(t *testing.T) {
	for _, c := range []struct{ n, block, want int64 }{
		{1, 256 << 10, 8}, {4 << 10, 256 << 10, 8}, {32 << 10, 256 << 10, 4}, {96 << 10, 256 << 10, 2}, {256 << 10, 256 << 10, 2},
		{4 << 10, 16 << 10, 2}, {4 << 10, 64 << 10, 2}, {4 << 10, 1 << 20, 29}, {1, 1, 1}, {1, 7, 2},
	} {
		var h heatMap
		for range 3 { // it starts over when a block is bought
			if got := touches(&h, heatKey{block: 1}, c.n, c.block, 10); int64(got) != c.want {
				t.Errorf("%d bytes of blocks of %d: bought at read %d, want %d", c.n, c.block, got, c.want)
			}
		}
	}
}

func TestHeatOfABlockIsForgottenAfterAWindowOfOthers(t *testing.T) {
	const window, unit = 100, 256 << 10
	var h heatMap
	others := func(n int64) {
		for k := range n {
			h.touch(heatKey{block: 1000 + k}, 1, unit, window)
		}
	}
	for round := range 10 { // a window of blocks, over and over again: each is bought
		for k := range int64(window) {
			if bought := h.touch(heatKey{block: k}, 1, unit, window); bought != (round == 7) {
				t.Fatalf("block %d, round %d: bought %v", k, round, bought)
			}
		}
	}
	h = heatMap{}
	for range 7 {
		h.touch(heatKey{}, 1, unit, window)
	}
	others(window)
	if !h.touch(heatKey{}, 1, unit, window) {
		t.Error("forgotten after a window of others")
	}
	for range 7 {
		if h.touch(heatKey{}, 1, unit, window) {
			t.Error("bought again at once")
		}
	}
	others(2*window + 1)
	if h.touch(heatKey{}, 1, unit, window) {
		t.Error("remembered after two windows of others")
	}
	if n := len(h.now) + len(h.old); n > 2*window {
		t.Errorf("%d blocks remembered", n)
	}
}
