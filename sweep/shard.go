package sweep

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// MaxShards bounds how many parts a sweep is dealt to.
const MaxShards = 10_000

// A Shard is one of several parts of a sweep: the points whose number leaves Index when divided by Of.
// So neighbours, which often take as long as each other, go to different shards.
type Shard struct{ Index, Of int }

// Whole is the shard that has every point.
var Whole = Shard{0, 1}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// MarshalText writes INDEX/OF.
func (s Shard) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads INDEX/OF.
func (s *Shard) UnmarshalText(text []byte) (err error) {
	*s, err = ParseShard(string(text), nil)
	return err
}

func (s Shard) has(point int) bool { return point%s.Of == s.Index }

// Path is where the shard's part of an output goes.
func (s Shard) Path(out string) string {
	return fmt.Sprintf("%s.shard-%d-of-%d", out, s.Index, s.Of)
}

var shardForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})/([1-9][0-9]{0,8})$`)

// ParseShard reads INDEX/OF, from 0/OF on; auto/OF takes the index from JOB_COMPLETION_INDEX or
// SLURM_ARRAY_TASK_ID, and auto both from a Slurm array, whichever number that starts at. A nil getenv
// knows no variables.
func ParseShard(text string, getenv func(string) string) (Shard, error) {
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	index, of, counted := strings.Cut(text, "/")
	if index == "auto" {
		return auto(of, counted, getenv)
	}
	m := shardForm.FindStringSubmatch(text)
	if m == nil {
		return Shard{}, fmt.Errorf("must be INDEX/OF such as 0/4, auto/4 or auto, is %q", text)
	}
	return shard(m[1], m[2])
}

func shard(index, of string) (Shard, error) {
	i, err := strconv.Atoi(index)
	n, err2 := strconv.Atoi(of)
	if err := errors.Join(err, err2); err != nil {
		return Shard{}, err
	}
	if n > MaxShards {
		return Shard{}, fmt.Errorf("there must be at most %d shards, are %d", MaxShards, n)
	}
	if i >= n {
		return Shard{}, fmt.Errorf("the first of %d shards is 0/%d and the last %d/%d, is %d/%d", n, n, n-1, n, i, n)
	}
	return Shard{i, n}, nil
}

const (
	ofKubernetes = "JOB_COMPLETION_INDEX"
	ofSlurm      = "SLURM_ARRAY_TASK_ID"
)

var wholeForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)

// auto finds the shard in the environment. With a given number of shards an index is taken as it is, so
// that a Slurm array of those that failed, --array=2, does them again and no others.
func auto(of string, counted bool, getenv func(string) string) (Shard, error) {
	kubernetes, slurm := getenv(ofKubernetes), getenv(ofSlurm)
	index, from := kubernetes, ofKubernetes
	switch {
	case kubernetes == "" && slurm == "":
		return Shard{}, fmt.Errorf("auto needs %s or %s in the environment, there is neither", ofKubernetes, ofSlurm)
	case kubernetes != "" && slurm != "":
		return Shard{}, fmt.Errorf("auto needs one of %s and %s in the environment, there are both", ofKubernetes, ofSlurm)
	case kubernetes == "":
		index, from = slurm, ofSlurm
	}
	if !wholeForm.MatchString(index) {
		return Shard{}, fmt.Errorf("%s must be a whole number, is %q", from, index)
	}
	if counted {
		if !wholeForm.MatchString(of) || of == "0" {
			return Shard{}, fmt.Errorf("must be auto/OF such as auto/4, is %q", "auto/"+of)
		}
		if first := getenv("SLURM_ARRAY_TASK_MIN"); from == ofSlurm && first != "0" && getenv("SLURM_ARRAY_TASK_COUNT") == of && of != "1" {
			return Shard{}, fmt.Errorf("auto/%s: the array must start at 0, starts at %s; auto takes any", of, first)
		}
		s, err := shard(index, of)
		if err != nil {
			err = fmt.Errorf("%s is %s: %w", from, index, err)
		}
		return s, err
	}
	if from == ofKubernetes {
		return Shard{}, fmt.Errorf("auto/OF is needed with %s, which does not tell how many there are", ofKubernetes)
	}
	id, _ := strconv.Atoi(index)
	var numbers [4]int
	for i, name := range []string{"SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_STEP"} {
		text := getenv(name)
		if text == "" && i == 3 {
			text = "1" // only some arrays tell their step
		}
		if !wholeForm.MatchString(text) {
			return Shard{}, fmt.Errorf("auto: %s must be a whole number, is %q", name, text)
		}
		numbers[i], _ = strconv.Atoi(text)
	}
	first, last, count, step := numbers[0], numbers[1], numbers[2], max(numbers[3], 1)
	if last-first != (count-1)*step || (id-first)%step != 0 || id < first || id > last {
		return Shard{}, fmt.Errorf("auto needs an array without gaps, is one of %d tasks from %d to %d; auto/OF takes the index as it is", count, first, last)
	}
	return shard(strconv.Itoa((id-first)/step), strconv.Itoa(count))
}
