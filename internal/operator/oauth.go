package operator

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed oauth_map.sql
	oauthMapSQL string
	//go:embed oauth_unmap.sql
	oauthUnmapSQL string
	//go:embed oauth_list.sql
	oauthListSQL string
)

type oauthMapArgs struct {
	Issuer  string   `json:"issuer" doc:"Who makes the tokens: their claim iss, exactly" maxlen:"500"`
	Subject string   `json:"subject" doc:"Whom they are for: their claim sub, exactly" maxlen:"500"`
	AgentID string   `json:"agent_id" doc:"The agent they act as" maxlen:"64"`
	Scope   []string `json:"scope,omitempty" doc:"The most that a token may carry, as in key create; *:read if left out"`
}

type subjectLine struct {
	Issuer  string   `json:"issuer"`
	Subject string   `json:"subject"`
	AgentID string   `json:"agent_id"`
	Scopes  []string `json:"scopes"`
}

type oauthMapped struct {
	subjectLine
	Before string `json:"agent_before,omitzero"`
}

// oauthMap takes effect with the next call.
func (s *session) oauthMap(ctx context.Context, _ caller.Caller, a oauthMapArgs) (oauthMapped, error) {
	if err := checkIssuer(a.Issuer); err != nil {
		return oauthMapped{}, err
	}
	if a.Subject == "" {
		return oauthMapped{}, fault.Invalid("subject", "subject must not be empty")
	}
	scopes := slices.Compact(slices.Sorted(slices.Values(a.Scope)))
	if len(scopes) == 0 {
		scopes = slices.Clone(defaultScopes)
	}
	for _, scope := range scopes {
		if err := s.checkScope(scope); err != nil {
			return oauthMapped{}, err
		}
	}
	agent, err := s.read(ctx, a.AgentID)
	if err != nil {
		return oauthMapped{}, err
	}
	if agent.State == "archived" {
		return oauthMapped{}, fault.New(fault.Conflict, "agent %s is archived; bring it back first: pawgate agent restore %s", a.AgentID, a.AgentID)
	}
	r, err := postgres.One[oauthMapped](ctx, s.db, oauthMapSQL, pgx.StrictNamedArgs{
		"issuer": a.Issuer, "subject": a.Subject, "agent_id": a.AgentID, "scopes": scopes,
	})
	if err != nil {
		return oauthMapped{}, fmt.Errorf("map subject: %w", err)
	}
	return r, nil
}

// checkIssuer refuses what no token's issuer can be (RFC 8414 §2): it is
// compared letter by letter, so a mistake would never be noticed.
func checkIssuer(text string) error {
	u, err := url.Parse(text)
	local := err == nil && u.Scheme == "http" && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname())
	if err != nil || u.Host == "" || u.Scheme != "https" && !local || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fault.Invalid("issuer", "issuer must be the URL that the tokens name as iss, such as https://login.example.com/, without query and fragment")
	}
	return nil
}

type oauthUnmapArgs struct {
	Issuer  string `json:"issuer" doc:"Who makes the tokens" maxlen:"500"`
	Subject string `json:"subject" doc:"Whom they are for" maxlen:"500"`
}

// oauthUnmap refuses their tokens from the next call on.
func (s *session) oauthUnmap(ctx context.Context, _ caller.Caller, a oauthUnmapArgs) (subjectLine, error) {
	r, err := postgres.One[subjectLine](ctx, s.db, oauthUnmapSQL, pgx.StrictNamedArgs{"issuer": a.Issuer, "subject": a.Subject})
	if errors.Is(err, pgx.ErrNoRows) {
		return subjectLine{}, fault.New(fault.NotFound, "this subject is mapped to no agent; pawgate oauth list shows those that are")
	}
	if err != nil {
		return subjectLine{}, fmt.Errorf("unmap subject: %w", err)
	}
	s.about = r.AgentID
	return r, nil
}

type oauthListArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Only of this agent" maxlen:"64"`
	Limit   int    `json:"limit,omitempty" doc:"Most to show; 1000 if left out" min:"1" max:"5000"`
}

type oauthListResult struct {
	Subjects []subjectLine `json:"subjects"`
}

func (s *session) oauthList(ctx context.Context, _ caller.Caller, a oauthListArgs) (oauthListResult, error) {
	s.about = a.AgentID
	subjects, err := postgres.All[subjectLine](ctx, s.db, oauthListSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID, "limit": cmp.Or(a.Limit, 1000)})
	if err != nil {
		return oauthListResult{}, fmt.Errorf("list subjects: %w", err)
	}
	return oauthListResult{Subjects: subjects}, nil
}
