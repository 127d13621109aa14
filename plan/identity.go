// Package plan answers planning questions by running scenarios.
//
// It knows runs and verdicts. It knows nothing of how a scenario is written, or an answer shown.
package plan

import (
	"llmsim/report"
	"llmsim/scenarios"
)

// Version is the program's, as every output carries it.
const Version = "0.1.0"

// Identify says which run its results are of. The notes are those of the scenario's source.
func Identify(s *scenarios.Scenario, notes []string) (report.Identity, error) {
	digest, err := s.Digest()
	if err != nil {
		return report.Identity{}, err
	}
	blocks, _ := s.KVBlocks()
	id := report.Identity{
		Version: Version, Scenario: s.Name, Digest: digest, Seed: s.Seed,
		Policy: s.Engine.Policy, Models: s.Engine.Models,
		Defaults: s.Engine.Defaults,
		Blocks:   blocks, BlockSize: s.Engine.BlockSize,
		Workload: s.Workload.String(),
	}
	e := s.Cost.Efficiency
	if s.Cost.Model == "roofline" && e.Compute == 1 && e.Memory == 1 {
		id.Assumptions = append(id.Assumptions,
			"steps run at the full roofline (efficiency 1): real engines need 20-60% longer")
	}
	id.Assumptions = append(id.Assumptions, notes...)
	return id, nil
}
