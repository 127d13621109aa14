package sim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"llmsim/internal/transcript"
	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/sim/rng"
	"llmsim/workload"
)

// Clusters in conversation; testdata is their documentation. Commands, with what holds if a value
// is not given:
//
//	new replicas=1 blocks=100 block=4 slots=8 budget=64 watermark=0 router=round-robin
//	    max_model_len=400 step=10ms token=0s seed=1
//	                             a step takes step, and token for each that it computes
//	pool NAME replicas=1 accepts=0-0 ... weight=0
//	                             the same, one after the other, makes a cluster of several pools; the
//	                             router of the last is that of every set of them
//	submit NAME PROMPT/OUTPUT at=NOW prefix=A.B.C piece=4
//	                             the prompt starts with the pieces A, B and C, letters, of 4 tokens
//	cancel NAME at=NOW
//	advance TO
//	drain                        to the end, through every stop
//	next
//	counts
//
// Steps are told when they end; "step 2 on 1" is the third of replica 1.
func TestClusterTranscripts(t *testing.T) {
	transcript.Run(t, "testdata/*.txt", func() transcript.Conversation {
		var talk clusterTalk
		return talk.answer
	})
}

// linear is a price that can be computed in one's head.
type linear struct{ step, token time.Duration }

func (l linear) StepTime(s cost.Shape) (time.Duration, cost.Bound) {
	return l.step + time.Duration(s.Tokens)*l.token, cost.Overhead
}

type clusterTalk struct {
	*sim.Cluster
	names   []string // of ids
	tickets map[string]sim.Ticket
	said    strings.Builder
	pools   []sim.Pool // of the last commands
}

func (k *clusterTalk) say(format string, args ...any) { fmt.Fprintf(&k.said, format+"\n", args...) }

func (k *clusterTalk) answer(c *transcript.Command) string {
	k.said.Reset()
	if c.Name != "pool" {
		k.pools = nil
	}
	switch c.Name {
	case "new":
		k.build(c)
	case "pool":
		k.pool(c)
	case "submit":
		k.submit(c)
	case "cancel":
		ticket, ok := k.tickets[c.Word(0, "name")]
		if !ok {
			c.Fatalf("%s is not known", c.Words[0])
		}
		k.Cancel(ticket, c.Duration("at", k.Now()))
	case "advance":
		to, err := time.ParseDuration(c.Word(0, "instant"))
		if err != nil {
			c.Fatalf("%v", err)
		}
		k.tell(k.Advance(to))
		k.say("now %v", k.Now())
	case "drain":
		for _, ok := k.Next(); ok; _, ok = k.Next() {
			k.tell(k.Advance(forever))
		}
		k.say("now %v", k.Now())
	case "next":
		if at, ok := k.Next(); ok {
			k.say("%v", at)
		} else {
			k.say("never")
		}
	case "counts":
		n := k.Counts()
		k.say("arrived %d = completed %d + refused %d + cancelled %d + queued %d + running %d",
			n.Arrived, n.Completed, n.Refused, n.Cancelled, n.Queued, n.Running)
	default:
		c.Fatalf("is not known")
	}
	if n := k.Counts(); n.Arrived != n.Completed+n.Refused+n.Cancelled+n.Queued+n.Running {
		c.Fatalf("Counts() = %+v do not add up", n)
	}
	return k.said.String()
}

// pool adds one and starts again.
func (k *clusterTalk) pool(c *transcript.Command) {
	s := k.setup(c)
	p := s.pool()
	p.Name, p.Weight = c.Word(0, "name"), float32(c.Float("weight", 0))
	if _, err := fmt.Sscanf(c.Text("accepts", "0-0"), "%d-%d", &p.Accepts.Lo, &p.Accepts.Hi); err != nil {
		c.Fatalf("%v", err)
	}
	k.pools = append(k.pools, p)
	cluster := sim.New(sim.Config{Pools: k.pools, Routers: func(uint64) sim.Router { return s.router() }})
	*k = clusterTalk{Cluster: cluster, tickets: map[string]sim.Ticket{}, pools: k.pools}
}

func (k *clusterTalk) build(c *transcript.Command) {
	*k = clusterTalk{Cluster: k.setup(c).cluster(), tickets: map[string]sim.Ticket{}}
}

func (k *clusterTalk) setup(c *transcript.Command) setup {
	s := setup{
		replicas: c.Int("replicas", 1), blocks: c.Int("blocks", 100), block: c.Int("block", 4),
		slots: c.Int("slots", 8), budget: c.Int("budget", 64), watermark: c.Float("watermark", 0),
		maxModelLen: c.Int("max_model_len", 400),
		cost:        linear{c.Duration("step", 10*time.Millisecond), c.Duration("token", 0)},
	}
	seed := uint64(c.Int("seed", 1))
	routers := map[string]func() sim.Router{
		"round-robin":     func() sim.Router { return &sim.RoundRobin{} },
		"least-loaded":    func() sim.Router { return sim.LeastLoaded{} },
		"shortest-queue":  func() sim.Router { return sim.ShortestQueue{} },
		"power-of-two":    func() sim.Router { return sim.PowerOfTwo{Stream: rng.New(seed, "router")} },
		"prefix-affinity": func() sim.Router { return sim.NewPrefixAffinity(c.Int("remembers", 100)) },
	}
	name := c.Text("router", "round-robin")
	if routers[name] == nil {
		c.Fatalf("router %s is not known", name)
	}
	s.router = routers[name]
	return s
}

func (k *clusterTalk) submit(c *transcript.Command) {
	name := c.Word(0, "name")
	r := workload.Request{ID: int64(len(k.names)), Arrival: c.Duration("at", k.Now())}
	if _, err := fmt.Sscanf(c.Word(1, "lengths"), "%d/%d", &r.Prompt, &r.Output); err != nil {
		c.Fatalf("%v", err)
	}
	if prefix := c.Text("prefix", ""); prefix != "" {
		for piece := range strings.SplitSeq(prefix, ".") {
			r.Prefix = append(r.Prefix, uint64(piece[0]))
		}
		r.PrefixBlock = c.Int("piece", 4)
	}
	k.names = append(k.names, name)
	ticket, err := k.Submit(r)
	if err != nil {
		if refusal := (*sim.Refusal)(nil); !errors.As(err, &refusal) || refusal.Request.ID != r.ID {
			c.Fatalf("Submit(%+v) = %#v, want a *Refusal of it", r, err)
		}
		k.say("%v", err)
	}
	k.tickets[name] = ticket
}

func (k *clusterTalk) tell(steps []sim.Step) {
	for _, s := range steps {
		k.say("step %d on %d, %v to %v: %d tokens, %d running, %d waiting",
			s.Index, s.Replica, s.Start, s.End, s.Shape.Tokens, s.Running, s.Waiting)
		for _, id := range s.Preempted {
			k.say("  preempted %s", k.names[id])
		}
		if s.Steady > 0 {
			k.say("  %d steady", s.Steady)
		}
		for _, id := range s.Firsts {
			k.say("  first %s", k.names[id])
		}
		for _, g := range s.Gaps {
			why := "stalled"
			if g.Preempted {
				why = "preempted"
			}
			k.say("  gap %s %v, %s", k.names[g.ID], g.Time, why)
		}
		for _, f := range s.Finished {
			k.say("  finished %s: arrived %v, scheduled %v, first %v, last %v, %d preemptions",
				k.names[f.ID], f.Arrival, f.FirstSchedule, f.FirstToken, f.LastToken, f.Preemptions)
		}
	}
}
