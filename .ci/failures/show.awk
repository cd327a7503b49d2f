# Reads the output of "go test -v PACKAGES..." and prints what is needed to understand its failures, in at most max lines
# (1500): what did not compile; of each test that failed its own output, told from that of tests beside it by the lines
# "=== NAME"; panics and data races; and what the package wrote after all tests.

function out(line) {
	if (++printed <= max) print substr(line, 1, 2000)
	else if (printed == max + 1) print "(cut here: " max " lines)"
}

# add puts line i into a list.
function add(list, i) { item[list, ++items[list]] = i }

# show_list prints the lines of a list, but only the first head and the last tail of them.
function show_list(list, head, tail,   i, k) {
	k = items[list]
	for (i = 1; i <= k; i++) {
		if (i == head + 1 && k - i >= tail) {
			out("    (" k - tail - i + 1 " lines left out)")
			i = k - tail + 1
		}
		out(line[item[list, i]])
		shown[item[list, i]] = 1
	}
	items[list] = 0
}

# show prints what matters of a package that failed.
function show(   i, j, f, name, word, failed, rest) {
	out("")
	out("##### " line[n])
	rest = 1 # where the output after all tests begins
	for (i = 1; i <= n; i++) {
		split(line[i], word, " ")
		if (line[i] ~ /^=== (RUN|NAME|CONT|PAUSE) /) {
			name = word[3]
		} else if (line[i] ~ /^ *--- (PASS|FAIL|SKIP|BENCH): /) {
			if (word[2] == "FAIL:") failed[++f] = i
			name = ""
			rest = i + 1
		} else if (name != "") {
			add(name, i)
		}
	}
	for (i = 1; i <= f; i++) {
		out("")
		out(line[failed[i]])
		split(line[failed[i]], word, " ")
		show_list(word[3], 40, 60)
	}
	for (i = 1; i <= n; i++) {
		if (shown[i]) continue
		if (line[i] ~ /^WARNING: DATA RACE/) {
			for (j = i; j < n && line[j] !~ /^==================$/; j++) add("race", j)
			out("")
			show_list("race", 100, 0)
		} else if (line[i] ~ /^(panic|fatal error): /) { # its goroutines follow, to the end
			for (j = i; j <= n; j++) add("panic", j)
			out("")
			show_list("panic", 160, 40)
			rest = n + 1
		}
	}
	if (rest < n - 1) {
		for (i = rest; i <= n; i++) add("rest", i)
		out("")
		show_list("rest", 20, 40)
	}
	split("", shown); split("", item); split("", items)
}

BEGIN { if (!max) max = 1500 }
/^# / { broken = 1 }
/^(===|ok|FAIL|\?)/ { broken = 0 }
broken { out($0); next }
{ line[++n] = $0 }
/^(ok|FAIL|\?)[ \t]/ { # the last line of a package
	if ($1 == "FAIL" && n > 1) show()
	n = 0
}
END { if (n > 1 || n == 1 && line[1] != "FAIL") show() } # cut off in a package
