package validation

import (
	"fmt"
	"strconv"
	"strings"
)

// profiles are the engine versions that scenarios know, each from the version of vLLM on, the newest
// first.
var profiles = []struct {
	from   [2]int
	models string
}{
	{[2]int{0, 28}, "vllm-0.28"}, {[2]int{0, 19}, "vllm-0.19"}, {[2]int{0, 9}, "vllm-classic-v1"},
}

// releases are when versions came out, the newest first: those between which profiles differ, and
// those around them. Patch releases are left out. A few days of error are of no consequence: what matters
// is the profile.
var releases = []struct {
	date    string
	version string
}{
	{"2026-04-03", "0.19"}, {"2026-03-20", "0.18"}, {"2026-02-25", "0.16"}, {"2026-01-20", "0.14"}, {"2025-12-18", "0.13"},
	{"2025-12-03", "0.12"}, {"2025-10-02", "0.11"}, {"2025-07-24", "0.10"}, {"2025-05-28", "0.9"},
}

// minor reads the two leading numbers of a version such as 0.19.0 or v0.11.1rc2.
func minor(version string) (v [2]int, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(strings.TrimSpace(version), "v"), ".", 3)
	if len(parts) < 2 {
		return v, false
	}
	for i := range v {
		n, err := strconv.ParseUint(parts[i], 10, 16)
		if err != nil {
			return v, false
		}
		v[i] = int(n)
	}
	return v, true
}

func before(a, b [2]int) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

// at is the version that was current on a date, or nothing.
func at(date string) string {
	for _, r := range releases {
		if date >= r.date {
			return r.version
		}
	}
	return ""
}

// version is the recorded one or, of a date, the one that was current; empty: neither.
func (s *Setup) version() string {
	if s.Version != "" {
		return s.Version
	}
	return at(s.Date)
}

// engineModelled is the profile at or below the version, and a note where that is a guess.
func (s *Setup) engineModelled() (models, note string) {
	version := s.Version
	if version == "" {
		if version = at(s.Date); version == "" {
			return profiles[0].models, fmt.Sprintf("neither vLLM's version nor a date is recorded: modelled as %s", profiles[0].models)
		}
		note = fmt.Sprintf("vLLM's version is not recorded: taken for %s, current on %s", version, s.Date)
	}
	v, ok := minor(version)
	if !ok {
		return profiles[0].models, fmt.Sprintf("vLLM's version %q is not one of numbers: modelled as %s", version, profiles[0].models)
	}
	for _, p := range profiles {
		if !before(v, p.from) {
			return p.models, note
		}
	}
	oldest := profiles[len(profiles)-1].models
	return oldest, fmt.Sprintf("vLLM %s is older than any version modelled: modelled as %s", version, oldest)
}
