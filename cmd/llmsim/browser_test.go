package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browser finds Chromium; without it a test is skipped, or fails if LLMSIM_CHROMIUM=require.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("LLMSIM_CHROMIUM") == "require" {
		t.Fatal("there is no Chromium")
	}
	t.Skip("there is no Chromium to look at pages with")
	return ""
}

// complaint finds what a page has to say to its console, blocked requests among it.
var complaint = regexp.MustCompile(`(?m)^.*(CONSOLE|Uncaught|Refused to).*$`)

// look opens a page and returns what became of it, and the complaints.
func look(t *testing.T, page string, flags ...string) (dom string, complaints []string) {
	t.Helper()
	chromium := browser(t)
	path, err := filepath.Abs(page)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--enable-logging=stderr", "--virtual-time-budget=3000",
		"--window-size=1700,1200", "--user-data-dir=" + t.TempDir(), "--dump-dom"}, flags...)
	c := exec.CommandContext(ctx, chromium, append(args, "file://"+path)...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", chromium, err, &errs)
	}
	return out.String(), complaint.FindAllString(errs.String(), -1)
}

// frame shows a page as wide as it says: the browser's own window has a least width. It keeps what the page says.
const frame = `<!doctype html><body style="margin:0"><script>
addEventListener('message', e => { document.documentElement.dataset.said = e.data; });
</script><iframe src="%s" style="width:%dpx;height:1000px;border:0"></iframe></body>`

// probe is run in a page: it hides a curve, points at charts, looks closer and goes back, and tells what it
// saw.
const probe = `<script>
addEventListener('load', () => {
  Element.prototype.setPointerCapture = () => {}; // of a pointer that is not there
  const said = [];
  const plots = [...document.querySelectorAll('.chart .plot')];
  const point = (plot, type, share) => {
    const box = plot.querySelector('svg').getBoundingClientRect();
    plot.dispatchEvent(new PointerEvent(type, { clientX: box.left + share * box.width, clientY: box.top + 5, pointerType: 'mouse', button: 0, bubbles: true }));
  };
  const button = document.querySelector('.legend button');
  const curve = button.closest('.chart').querySelector('path[data-s="0"]');
  button.click();
  said.push('hidden ' + (getComputedStyle(curve).display === 'none'));
  button.click();
  said.push('shown ' + (getComputedStyle(curve).display !== 'none'));
  for (const p of plots) point(p, 'pointermove', 0.5);
  const tips = plots.map(p => p.querySelector('.tip:not(.off)')).filter(t => t && t.textContent.length > 3 && !t.textContent.includes('NaN'));
  said.push('tips ' + tips.length + ' of ' + plots.length);
  const zoomed = plots.filter(p => 'zoom' in p.parentElement.dataset);
  if (zoomed.length) {
    point(zoomed[0], 'pointerdown', 0.25);
    point(zoomed[0], 'pointermove', 0.5);
    point(zoomed[0], 'pointerup', 0.5);
    said.push('closer ' + zoomed.every(p => p.querySelector('svg').getAttribute('viewBox') === '250 0 250 1000' && p.querySelectorAll('span.x').length > 2));
    zoomed[0].dispatchEvent(new MouseEvent('dblclick', { bubbles: true }));
    said.push('back ' + zoomed.every(p => p.querySelector('svg').getAttribute('viewBox') === '0 0 1000 1000'));
  }
  for (const p of plots) p.dispatchEvent(new PointerEvent('pointerleave'));
  said.push('drawn ' + plots.every(p => { const b = p.querySelector('svg').getBoundingClientRect(); return b.width > 150 && b.height > 100; }));
  said.push('fits ' + (document.documentElement.scrollWidth <= innerWidth));
  said.push('width ' + innerWidth);
  parent.postMessage(said.join('; '), '*');
});
</script>`

// Pages work in a browser, in windows narrow and wide, light and dark: nothing is complained of, every chart is
// there and answers the pointer.
func TestPagesInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	browser(t)
	inFolder(t, nil)
	simulated(t, "--scenario", "e5", "--html", "run.html")
	if a := invoke(t.Context(), "plan", "--rate", "80", "--slo", "ttft-p99=500ms,itl-p99=50ms", "--html", "plan.html"); a.code != exitYes {
		t.Fatal(a)
	}
	if a := invoke(t.Context(), "plan", "--model", "qwen2.5-7b", "--policy", "vllm-v1", "--gpu", "any", "--rate", "20", "--html", "compare.html"); a.code != exitYes {
		t.Fatal(a)
	}
	swept(t, append(smallSweep, "--seeds", "2", "--html", "grid.html")...)
	swept(t, "--over", "policy,model=classic:article-7b,vllm-v1:llama-3.1-8b", "--requests", "50", "--html", "names.html")
	for page, charts := range map[string]int{"run.html": 7, "plan.html": 8, "compare.html": 1, "grid.html": 3, "names.html": 3} {
		text := readText(t, page)
		probed := "probed-" + page
		if err := os.WriteFile(probed, []byte(strings.Replace(text, "</body>", probe+"</body>", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{360, 1600} {
			if err := os.WriteFile("frame.html", fmt.Appendf(nil, frame, probed, width), 0o600); err != nil {
				t.Fatal(err)
			}
			dom, complaints := look(t, "frame.html", fmt.Sprintf("--blink-settings=preferredColorScheme=%d", width/360%2))
			want := fmt.Sprintf("hidden true; shown true; tips %d of %d; closer true; back true; drawn true; fits true; width %d", charts, charts, width)
			switch page {
			case "compare.html": // of dots, which say by themselves what they are
				want = fmt.Sprintf("hidden true; shown true; tips 0 of 1; drawn true; fits true; width %d", width)
			case "grid.html", "names.html": // not over time
				want = strings.Replace(want, " closer true; back true;", "", 1)
			}
			if !strings.Contains(dom, `data-said="`+want+`"`) || len(complaints) > 0 {
				t.Errorf("%s at %d: complaints %q, said %s, want %s", page, width, complaints, regexp.MustCompile(`data-said="[^"]*"`).FindString(dom), want)
			}
		}
	}
	// What a page must not do is seen when it does it.
	for name, fault := range map[string]string{"throws": "<script>absent()</script>", "asks": `<img src="http://127.0.0.1:9/x.png">`} {
		page := name + ".html"
		if err := os.WriteFile(page, []byte(strings.Replace(readText(t, "run.html"), "</body>", fault+"</body>", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, complaints := look(t, page); len(complaints) == 0 {
			t.Errorf("a page that %s has no complaint, want one", name)
		}
	}
}
