// Package fakehttp is what the fake object stores of this project have in common: a server inside the process that records
// every request, and to which anything can happen that happens on a wire.
//
// It knows no protocol. A fake store brings an [Exchange], which says what a request is, whether it is authentic, and what the
// answer is; this package listens, keeps the log, lets faults act, and sends the answer, deformed as asked. Nothing
// deviates unless it was asked for.
//
// # The life of a request
//
// A fault acts at each of these steps in turn:
//
//	arrive, Begin, log  ->  latency  ->  Authenticate  ->  match faults
//	  ->  Before (end the connection)  ->  Delay, HoldBefore  ->  Reply without Commit
//	  ->  Handle (commit)  ->  Then  ->  HoldAfter  ->  After (lost reply)
//	  ->  Reply with Commit  ->  Finish, deform headers and body  ->  Cut
//
// Faults see authentic requests only: one that Authenticate refuses is not counted by Nth.
//
// # Transports
//
// By default a server listens on a loopback TCP port, over TLS when Options.TLS is set. With Options.InMemory connections
// are net.Pipes and no socket is opened; such a server can live in a testing/synctest bubble. In every mode [Server.Client]
// and [Server.Transport] reach the server whatever host a URL names. [Server.Close] releases what is held, ends every
// connection and returns when no goroutine of the server is left.
//
// # A new fake
//
// It embeds *Server, so that it has the methods for faults, the log and connections, and gives each request an object:
//
//	type Server struct {
//		*fakehttp.Server
//		knobs fakehttp.Steady[Knobs]  // has Load and Set
//		...                           // what is stored
//	}
//
//	type Knobs struct {
//		fakehttp.Traits  // Shape, Latency, Bandwidth
//		...              // steady traits of this service
//	}
//
//	func Start(opts Options) (*Server, error) {
//		s := &Server{...}
//		var err error
//		if s.Server, err = fakehttp.Listen(fakehttp.Options{InMemory: opts.InMemory, TLS: opts.TLS, ...}); err != nil {
//			return nil, err
//		}
//		s.Serve(s.begin)
//		return s, nil
//	}
//
//	type call struct {
//		*fakehttp.Call
//		s     *Server
//		knobs *Knobs
//		bad   *fakehttp.Answer // why the address could not be understood
//	}
//
//	func (s *Server) begin(c *fakehttp.Call) fakehttp.Exchange {
//		x := &call{Call: c, s: s, knobs: s.knobs.Load()}
//		c.Traits = x.knobs.Traits
//		c.Op, c.Bucket, c.Key = "objects.get", ..., ...  // the rest of Request is there
//		return x
//	}
//
//	func (x *call) Authenticate() *fakehttp.Answer // nil: authentic; else x.bad or a 401
//	func (x *call) Handle() *fakehttp.Answer       // switch on x.Op
//	func (x *call) Error(status int, code, message string) *fakehttp.Answer
//	func (x *call) Finish(a *fakehttp.Answer)      // Date, Server, request id
//
// Handle honours what it can of Shape: see its fields. [ParseRange], [Shape.Deform] and [Shape.RangeHeader] do ranges,
// [Call.ReadBody] reads a body, [Shape.ETagOf] and [Shape.EditPage] are for what their fields are for.
package fakehttp
