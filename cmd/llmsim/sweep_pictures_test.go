package main

import (
	"strings"
	"testing"
)

// A sweep with pictures says what it says without, and its files stand alone and are the same each time.
func TestSweepPictures(t *testing.T) {
	inFolder(t, nil)
	args := append(smallSweep, "--seeds", "2", "--slo", "ttft-p99=500ms")
	plain := swept(t, args...)
	var last string
	for range 2 {
		if got := swept(t, append(args, "--html", "s.html", "--plot", "s.svg")...); got != plain {
			t.Errorf("sweep with pictures prints\n%s\nwant\n%s", got, plain)
		}
		both := readText(t, "s.html") + readText(t, "s.svg")
		if last != "" && both != last {
			t.Error("the pictures of one sweep differ")
		}
		last = both
	}
	page := readText(t, "s.html")
	for _, m := range asks.FindAllString(page, -1) {
		t.Errorf("s.html asks for something: %s", m)
	}
	if n := strings.Count(page, `<figure class="chart"`); n != 3 || strings.Contains(page, "http://") || strings.Contains(page, "https://") {
		t.Errorf("s.html has %d charts, want 3, and no address", n)
	}
	for _, want := range []string{"6 points of scenario base", "sha256:", "max_num_seqs=8</button>", "max_num_seqs=64</button>", "ttft-p99 500 ms", `<path class="w c1"`,
		"<td>engine.max_num_seqs</td>", "rate (req/s)", "TTFT p99 (ms)"} {
		if !strings.Contains(page, want) {
			t.Errorf("s.html lacks %q", want)
		}
	}
	// With --out, all appear together, and the journal goes.
	swept(t, append(args, "--columns", "kv_use_mean", "--out", "o.csv", "--html", "o.html", "--plot", "o.png")...)
	if n := strings.Count(readText(t, "o.html"), `<figure class="chart"`); n != 1 {
		t.Errorf("--columns with one name: %d charts, want 1", n)
	}
	if got := strings.Join(filesHere(t), " "); got != "o.csv o.html o.png s.html s.svg" {
		t.Errorf("there are %s, want five files", got)
	}
}

// Names are an axis where nothing is a number, and curves that are too many are named.
func TestSweepPicturesOfNamesAndMany(t *testing.T) {
	inFolder(t, nil)
	swept(t, "--over", "policy,model=classic:article-7b,vllm-v1:llama-3.1-8b", "--requests", "50", "--html", "n.html", "--plot", "n.pdf")
	if page := readText(t, "n.html"); !strings.Contains(page, "data-names=\"classic:article-7b\nvllm-v1:llama-3.1-8b\"") || !strings.Contains(page, ">classic:ar..</span>") {
		t.Error("n.html lacks the names of its axis")
	}
	swept(t, "--over", "rate=20,30", "--over", "seed=1..13:1", "--requests", "20", "--html", "m.html", "--plot", "m.png")
	page := readText(t, "m.html")
	for _, want := range []string{"12 of 13 curves", "not drawn: seed=13.", "seed=12</button>"} {
		if !strings.Contains(page, want) {
			t.Errorf("m.html lacks %q", want)
		}
	}
}

// The pictures of shards that were put together are those of the sweep.
func TestMergedSweepPictures(t *testing.T) {
	inFolder(t, nil)
	swept(t, append(smallSweep, "--html", "whole.html", "--plot", "whole.svg")...)
	for _, shard := range []string{"0/2", "1/2"} {
		swept(t, append(smallSweep, "--out", "g.csv", "--shard", shard)...)
	}
	parts := []string{"merge", "g.csv.shard-0-of-2", "g.csv.shard-1-of-2"}
	swept(t, append(parts, "--html", "merged.html", "--plot", "merged.svg")...)
	if readText(t, "whole.html") != readText(t, "merged.html") || readText(t, "whole.svg") != readText(t, "merged.svg") {
		t.Error("the pictures differ from those of one sweep")
	}
	refused(t, "--html g.csv.shard-0-of-2, g.csv.shard-0-of-2: must be two files, are one", append([]string{"sweep"}, append(parts, "--html", "g.csv.shard-0-of-2")...)...)
	refused(t, "--plot: must end in .png, .svg, .pdf, is g.gif", append([]string{"sweep"}, append(parts, "--plot", "g.gif")...)...)
}

func TestSweepPicturesThatAreRefused(t *testing.T) {
	inFolder(t, map[string]string{"x.csv": fewRequests})
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--plot: must end in .png, .svg, .pdf, is s.gif", []string{"--plot", "s.gif", "--html", "s.html"}},
		{"--html: needs a file name, is empty", []string{"--html", ""}},
		{"--plot: needs a file name, is empty", []string{"--plot", " "}},
		{"--html: absent/x.html: no such file or directory", []string{"--html", "absent/x.html", "--plot", "s.png", "--out", "s.csv"}},
		{"--html s.png, --plot ./s.png: must be two files, are one", []string{"--html", "s.png", "--plot", "./s.png"}},
		{"--html s.csv, --out s.csv: must be two files, are one", []string{"--html", "s.csv", "--out", "s.csv"}},
		{"--html s.csv.partial, the journal of --out, s.csv.partial: must be two files, are one", []string{"--html", "s.csv.partial", "--out", "s.csv"}},
		{"--html x.csv, --trace x.csv: must be two files, are one", []string{"--trace", "x.csv", "--html", "x.csv"}},
		{"--html: goes to llmsim sweep merge, a shard has a part of the points", []string{"--shard", "0/2", "--out", "s.csv", "--html", "s.html"}},
		{"--plot: goes to llmsim sweep merge, a shard has a part of the points", []string{"--shard", "0/2", "--out", "s.csv", "--plot", "s.png"}},
	} {
		refused(t, c.want, append([]string{"sweep", "--over", "engine.max_num_seqs=8,64"}, c.args...)...)
	}
}
