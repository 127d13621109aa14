package sweep

import (
	"strings"
	"testing"
)

func TestParseShard(t *testing.T) {
	array := func(id, lowest, highest, count, step string) map[string]string {
		return map[string]string{"SLURM_ARRAY_TASK_ID": id, "SLURM_ARRAY_TASK_MIN": lowest, "SLURM_ARRAY_TASK_MAX": highest,
			"SLURM_ARRAY_TASK_COUNT": count, "SLURM_ARRAY_TASK_STEP": step}
	}
	pod := func(index string) map[string]string { return map[string]string{"JOB_COMPLETION_INDEX": index} }
	for _, c := range []struct {
		text string
		env  map[string]string
		want string // a shard, or part of an error
	}{
		{"0/1", nil, "0/1"},
		{"3/4", pod("1"), "3/4"}, // what is given holds
		{"auto/4", pod("0"), "0/4"},
		{"auto/4", pod("3"), "3/4"},
		{"auto/4", array("2", "0", "3", "4", "1"), "2/4"},
		{"auto/4", array("2", "2", "2", "1", "1"), "2/4"}, // one of those that failed, again
		{"auto/4", array("3", "1", "3", "2", "2"), "3/4"},
		{"auto/1", array("0", "0", "0", "1", ""), "0/1"},
		{"auto", array("0", "0", "3", "4", "1"), "0/4"},
		{"auto", array("3", "1", "3", "3", ""), "2/3"},
		{"auto", array("14", "10", "16", "4", "2"), "2/4"},

		{"4/4", nil, "the first of 4 shards is 0/4 and the last 3/4, is 4/4"},
		{"0/10001", nil, "at most 10000 shards, are 10001"},
		{"", nil, `must be INDEX/OF such as 0/4, auto/4 or auto, is ""`},
		{"1", nil, `is "1"`},
		{"-1/4", nil, `is "-1/4"`},
		{"01/4", nil, `is "01/4"`},
		{"0/0", nil, `is "0/0"`},
		{"0/99999999999999999999", nil, "must be INDEX/OF"},
		{"auto/4", nil, "auto needs JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID in the environment, there is neither"},
		{"auto/4", map[string]string{"JOB_COMPLETION_INDEX": "0", "SLURM_ARRAY_TASK_ID": "0"}, "there are both"},
		{"auto/4", pod("x"), `JOB_COMPLETION_INDEX must be a whole number, is "x"`},
		{"auto/4", pod("4"), "JOB_COMPLETION_INDEX is 4: the first of 4 shards is 0/4"},
		{"auto/x", pod("0"), `must be auto/OF such as auto/4, is "auto/x"`},
		{"auto/", pod("0"), `is "auto/"`},
		{"auto", pod("0"), "auto/OF is needed with JOB_COMPLETION_INDEX"},
		{"auto/4", array("1", "1", "4", "4", "1"), "the array must start at 0, starts at 1"},
		{"auto", array("2", "1", "4", "3", "1"), "an array without gaps, is one of 3 tasks from 1 to 4"},
		{"auto", map[string]string{"SLURM_ARRAY_TASK_ID": "1"}, `SLURM_ARRAY_TASK_MIN must be a whole number, is ""`},
	} {
		s, err := ParseShard(c.text, func(name string) string { return c.env[name] })
		got := s.String()
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != c.want || err != nil && !strings.Contains(got, c.want) {
			t.Errorf("ParseShard(%q) with %v = %s, want %s", c.text, c.env, got, c.want)
		}
	}
}

// Every point is in one shard, and shards differ by one point at most.
func TestShardsDealPoints(t *testing.T) {
	for _, points := range []int{1, 2, 7, 12} {
		for of := 1; of <= 9; of++ {
			seen := map[int]int{}
			for i := range of {
				s := Shard{i, of}
				all := s.indices(points)
				if len(all) != s.size(points) || len(all) < points/of || len(all) > points/of+1 {
					t.Errorf("shard %v of %d points has %v, says %d", s, points, all, s.size(points))
				}
				for _, p := range all {
					seen[p]++
					if !s.has(p) {
						t.Errorf("shard %v says it has no point %d", s, p)
					}
				}
			}
			for p := range points {
				if seen[p] != 1 {
					t.Errorf("%d shards have point %d %d times, want once", of, p, seen[p])
				}
			}
		}
	}
}
