package transfer

import (
	"errors"
	"strconv"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
)

// Every circle is noticed, soon, wherever it begins and however long it is; a list that moves on never is one.
func TestCircle(t *testing.T) {
	for lead := range 20 {
		for length := 1; length < 20; length++ {
			var c circle
			n, err := 0, error(nil)
			for ; err == nil && n < 1000; n++ {
				i := n
				if n > lead {
					i = lead + (n-lead)%length
				}
				err = c.next(strconv.Itoa(i))
			}
			if !errors.Is(err, blob.ErrCorrupt) || n > 3*(lead+length)+3 {
				t.Errorf("a circle of %d after %d: %v after %d", length, lead, err, n)
			}
		}
	}
	var c circle
	for i := range 1000 {
		if err := c.next(strconv.Itoa(i)); err != nil {
			t.Fatal(i, err)
		}
	}
}
