package policy_test

import (
	"fmt"

	"llmsim/sim/kv"
	"llmsim/sim/policy"
)

// Two requests share eight blocks of 16 tokens; steps are decided and applied in turn until there
// is nothing to compute.
func ExampleClassic() {
	p := policy.NewClassic(kv.NewPool(8, 16), policy.Limits{MaxNumSeqs: 4, MaxNumBatchedTokens: 40}, 0.01)
	p.Add(policy.Request{Prompt: 64, Output: 3})
	p.Add(policy.Request{Prompt: 20, Output: 2})
	var decision policy.Decision
	var outcome policy.Outcome
	for p.Schedule(&decision) {
		load := p.Load()
		p.Commit(&outcome)
		fmt.Printf("%d tokens, %d of %d blocks, blocked by %v: first tokens %v, finished %v\n",
			decision.Shape.Tokens, load.Used, load.Used+load.Free, load.Blocked, outcome.Firsts, outcome.Finished)
	}
	// Output:
	// 40 tokens, 6 of 8 blocks, blocked by budget: first tokens [], finished []
	// 40 tokens, 6 of 8 blocks, blocked by budget: first tokens [0], finished []
	// 5 tokens, 7 of 8 blocks, blocked by none: first tokens [1], finished []
	// 2 tokens, 7 of 8 blocks, blocked by none: first tokens [], finished [0 1]
}

// A step of decodes alone is known beforehand, so that a caller may take many of them at a stride.
func ExamplePolicy_quiet() {
	var p policy.Policy = policy.NewClassic(kv.NewPool(8, 16), policy.Limits{MaxNumSeqs: 4, MaxNumBatchedTokens: 40}, 0)
	p.Add(policy.Request{Prompt: 14, Output: 6})
	var decision policy.Decision
	var outcome policy.Outcome
	p.Schedule(&decision)
	p.Commit(&outcome)
	for {
		shape, quiet := p.Quiet()
		if !quiet {
			break
		}
		p.Coast()
		fmt.Printf("%d decode on a context of %d, %d blocks\n", shape.Decodes, shape.Context, p.Load().Used)
	}
	p.Schedule(&decision)
	p.Commit(&outcome)
	fmt.Println("finished", outcome.Finished)
	// Output:
	// 1 decode on a context of 15, 1 blocks
	// 1 decode on a context of 16, 1 blocks
	// 1 decode on a context of 17, 2 blocks
	// 1 decode on a context of 18, 2 blocks
	// finished [0]
}
