package transfer

import (
	"fmt"

	"github.com/wholeblob/wholeblob/blob"
)

// circle notices a list whose pages lead back to one that was there before, which would be asked for ever. It is Brent's algorithm:
// one token is remembered and compared with those that follow, and replaced after 1, 2, 4, 8, ... of them; so a circle is
// noticed by its third turn at the latest, and no memory grows with the number of pages.
type circle struct {
	token       string
	steps, most int
}

// next is told each token of the list, in order; none is empty.
func (c *circle) next(token string) error {
	if token == c.token {
		return badReply(fmt.Errorf("%w: the list does not move on", blob.ErrCorrupt))
	}
	if c.steps == c.most {
		c.token, c.steps, c.most = token, 0, max(1, 2*c.most)
	}
	c.steps++
	return nil
}
