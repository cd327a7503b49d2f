package storetable

import (
	"strings"
	"testing"
)

func questions() []Question[string] {
	return []Question[string]{
		{Text: "one", Documented: "1", Source: `"One"`},
		{Text: "two", Documented: Undocumented},
	}
}

func made() string {
	return write("X", questions(), []Server[string]{{Name: "a"}, {Name: "b"}}, map[string][]string{"a": {"1", "x"}, "b": {"2", "y"}})
}

func TestTableEmphasizesWhatIsNotAsDocumented(t *testing.T) {
	const want = `| question | X documents | in | a | b |
| --- | --- | --- | --- | --- |
| one | 1 | "One" | same | **2** |
| two | – |  | x | y |
`
	if got := made(); got != want {
		t.Errorf("made\n%swant\n%s", got, want)
	}
}

func TestTableHoldsServersToTheirAnswers(t *testing.T) {
	other := questions()
	other[0].Documented = "3"
	for _, c := range []struct {
		name, server, want string
		questions          []Question[string]
		got                []string
	}{
		{"as it was", "b", "", questions(), []string{"2", "y"}},
		{"another answer", "b", `answers "z"`, questions(), []string{"2", "z"}},
		{"an answer that is now as documented", "b", `answers "same"`, questions(), []string{"1", "y"}},
		{"another document", "b", "begin with", other, []string{"2", "y"}},
		{"another server", "c", `a column "c"`, questions(), []string{"2", "y"}},
		{"another number of questions", "b", "1 rows", questions()[:1], []string{"2"}},
	} {
		faults := strings.Join(compare(made(), c.questions, c.server, c.got), "\n")
		if c.want == "" && faults != "" || !strings.Contains(faults, c.want) {
			t.Errorf("%s: %q, want %q", c.name, faults, c.want)
		}
	}
}

func TestTableIsCutOutOfTheTextAroundIt(t *testing.T) {
	text := "before\n" + strings.ReplaceAll("<!-- made by TestStoresTable: go test ./P -run TestStoresTable -update -->\nrows P\n", "P", "a") + end +
		"between\n" + strings.ReplaceAll("<!-- made by TestStoresTable: go test ./P -run TestStoresTable -update -->\nrows P\n", "P", "b") + end + "after\n"
	for _, pkg := range []string{"a", "b"} {
		before, rows, after, err := Table{Package: pkg}.cut(text)
		if err != nil || rows != "rows "+pkg+"\n" || before+rows+after != text {
			t.Errorf("%s: %q, %q, %q, %v", pkg, before, rows, after, err)
		}
	}
	if _, _, _, err := (Table{Package: "c"}).cut(text); err == nil {
		t.Error("no error for a table that is not there")
	}
}
