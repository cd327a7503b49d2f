package fakehttp

import "net/http"

// Exchange is one request as a protocol sees it. Its methods are called from one goroutine, each at most once but
// for Error, in the order that the package comment shows. They may read the body of Call.HTTP; what they leave is read and thrown away
// before the answer is sent.
type Exchange interface {
	// Authenticate returns nil for an authentic request that could be understood, else the refusal. No fault
	// acts on a refused request.
	Authenticate() *Answer
	// Handle does what the request asks for and returns the answer, a refusal included.
	Handle() *Answer
	// Error is the answer of the service with an error, for a Reply that was scripted. code and message may be empty:
	// then they are what the service says with that status.
	Error(status int, code, message string) *Answer
	// Finish adds what every answer of the service has: Date, Server, ids.
	Finish(*Answer)
}

// Begin makes the Exchange of a request that has arrived. It sets the fields of Request that the protocol knows (Op and
// those from Bucket on) and Call.Traits; it must not read the body.
type Begin func(*Call) Exchange

// Call is a request being served.
type Call struct {
	*Request
	// Traits are those the server has at this moment. Begin sets them; then the shapes of the faults that hit
	// this request are merged in.
	Traits
	// HTTP is the request of net/http.
	HTTP *http.Request
	// ID is different for every request: 16 hex digits.
	ID string
	// Entry is what the log will say of the request. The protocol sets Keys, and what it read of the body unless ReadBody did.
	Entry *Entry

	x     Exchange
	s     *Server
	shown *Entry // the one in the log, nil with NoLog
}

// Answer is an answer before it is deformed and sent.
type Answer struct {
	Status int
	Header http.Header
	// Body is not sent in answers to HEAD.
	Body Rope
	// Length is announced in answers to HEAD; other answers have the length of Body.
	Length int64
}

// NewAnswer returns an answer without a body.
func NewAnswer(status int) *Answer { return &Answer{Status: status, Header: http.Header{}} }

// Document returns an answer with a body of a type.
func Document(status int, contentType string, body []byte) *Answer {
	a := NewAnswer(status)
	a.Set("Content-Type", contentType)
	a.Body = Rope{body}
	return a
}

// Set leaves the header out when the value is empty.
func (a *Answer) Set(name, value string) {
	if value != "" {
		a.Header.Set(name, value)
	}
}
