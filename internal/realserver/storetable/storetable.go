// Package storetable is test support: it keeps tables of docs/stores.md in step with what servers answer.
//
// A test of each store puts its questions to a real server and to the fake that the store is tested with. A row has the question, what
// the service documents, and what each server answers; the test fails where a server answers something else than the table says.
package storetable

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// Undocumented is where the answers are facts without a verdict.
const Undocumented = "–"

// Question is one row of a table, in which servers differ and in whose answer a store has an interest.
type Question[T any] struct {
	Text       string
	Documented string // what the documents of the service say; Undocumented if they do not
	Source     string // the document that says so. "" in all of them: the text around the table names it
	// Ask puts the question to a server. key begins the names of all that it writes.
	Ask func(t *testing.T, server T, key string) string
}

// Server is one column.
type Server[T any] struct {
	Name  string
	Start func(t *testing.T) T // may skip the test; the column stays as it is
}

// Table is one table of a file, between two lines that name the package whose test makes it.
type Table struct {
	File    string // relative to the folder of the test
	Package string // its last element
	Service string // whose documents are quoted
}

// Run asks all servers, and compares the table with their answers, or writes it anew.
func Run[T any](t *testing.T, table Table, update bool, questions []Question[T], servers []Server[T]) {
	text, err := os.ReadFile(table.File)
	if err != nil {
		t.Fatal(err)
	}
	before, rows, after, err := table.cut(string(text))
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string][]string{}
	for _, s := range servers {
		t.Run(s.Name, func(t *testing.T) {
			server := s.Start(t)
			got := make([]string, len(questions))
			for i, q := range questions {
				got[i] = q.Ask(t, server, fmt.Sprintf("q%d-", i))
			}
			answers[s.Name] = got
			if !update {
				for _, fault := range compare(rows, questions, s.Name, got) {
					t.Errorf("%s: %s (-update rewrites it)", table.File, fault)
				}
			}
		})
	}
	if !update {
		return
	}
	for _, s := range servers {
		if answers[s.Name] == nil {
			t.Fatalf("no update: %s was not asked", s.Name)
		}
	}
	if err := os.WriteFile(table.File, []byte(before+write(table.Service, questions, servers, answers)+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// end is the line behind each table.
const end = "<!-- end of what TestStoresTable makes -->\n"

// cut splits the text around the rows of the table.
func (table Table) cut(text string) (before, rows, after string, err error) {
	begin := fmt.Sprintf("<!-- made by TestStoresTable: go test ./%s -run TestStoresTable -update -->\n", table.Package)
	before, rest, ok1 := strings.Cut(text, begin)
	rows, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return "", "", "", fmt.Errorf("%s has no lines that say where the table begins and ends: %q and %q", table.File, begin, end)
	}
	return before + begin, rows, end + after, nil
}

// facts are the cells of a row that do not depend on a server.
func (q Question[T]) facts(sources bool) []string {
	if sources {
		return []string{q.Text, q.Documented, q.Source}
	}
	return []string{q.Text, q.Documented}
}

func sourced[T any](questions []Question[T]) bool {
	return slices.ContainsFunc(questions, func(q Question[T]) bool { return q.Source != "" })
}

// write makes the table.
func write[T any](service string, questions []Question[T], servers []Server[T], answers map[string][]string) string {
	head := []string{"question", service + " documents"}
	if sourced(questions) {
		head = append(head, "in")
	}
	for _, s := range servers {
		head = append(head, s.Name)
	}
	var b strings.Builder
	row := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row(head)
	row(slices.Repeat([]string{"---"}, len(head)))
	for i, q := range questions {
		cells := q.facts(sourced(questions))
		for _, s := range servers {
			cells = append(cells, q.cell(answers[s.Name][i]))
		}
		row(cells)
	}
	return b.String()
}

// cell emphasizes what is not as documented.
func (q Question[T]) cell(answer string) string {
	switch q.Documented {
	case answer:
		return "same"
	case Undocumented:
		return answer
	}
	return "**" + answer + "**"
}

// compare finds where the column of a server, or the questions, are not as in the table.
func compare[T any](table string, questions []Question[T], server string, got []string) (faults []string) {
	rows := strings.Split(strings.TrimSpace(table), "\n")
	head := cells(rows[0])
	column := slices.Index(head, server)
	if column < 0 || len(rows) != len(questions)+2 {
		return []string{fmt.Sprintf("has the columns %q and %d rows; want a column %q and %d rows", head, len(rows)-2, server, len(questions))}
	}
	for i, q := range questions {
		row, facts := cells(rows[i+2]), q.facts(sourced(questions))
		switch want := q.cell(got[i]); {
		case len(row) != len(head) || !slices.Equal(row[:len(facts)], facts):
			faults = append(faults, fmt.Sprintf("row %d is %q, want it to begin with %q", i, row, facts))
		case row[column] != want:
			faults = append(faults, fmt.Sprintf("%s: %s answers %q, the table says %q", q.Text, server, want, row[column]))
		}
	}
	return faults
}

// cells are those of a row.
func cells(row string) []string {
	var list []string
	for c := range strings.SplitSeq(strings.Trim(row, "|"), "|") {
		list = append(list, strings.TrimSpace(c))
	}
	return list
}
