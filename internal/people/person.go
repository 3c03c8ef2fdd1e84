package people

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/agentfile"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed person_taken.sql
	personTakenSQL string
	//go:embed person_write.sql
	personWriteSQL string
	//go:embed person_list.sql
	personListSQL string
	//go:embed person_remove.sql
	personRemoveSQL string
)

// Person is somebody with accounts.
type Person struct {
	PersonID    string    `json:"person_id"`
	DisplayName string    `json:"display_name"`
	Roles       []string  `json:"roles"`
	ProjectIDs  []string  `json:"project_ids"`
	Accounts    []string  `json:"accounts"` // channel:account; an e-mail address is email:address
	UpdatedAt   time.Time `json:"updated_at"`
}

// maxWord is the longest name of a role or a project, in code points.
const maxWord = 64

// check refuses a person that could not be found or told from others, and puts
// the accounts in the form in which they are stored.
func (p *Person) check() error {
	if !agentfile.IsID(p.PersonID) {
		return fault.Invalid("person_id", "person_id must start with a letter or digit and have only a-z, 0-9, - and _, at most 64 of them")
	}
	if strings.TrimSpace(p.DisplayName) == "" || !agentfile.IsText(p.DisplayName) {
		return fault.Invalid("display_name", "display_name must be one line of at most 200 characters, without invisible ones")
	}
	for _, l := range []struct {
		parameter string
		words     []string
	}{{"roles", p.Roles}, {"project_ids", p.ProjectIDs}} {
		if i := slices.IndexFunc(l.words, func(w string) bool { return !plain(w, maxWord, " ._/-") || strings.TrimSpace(w) != w }); i >= 0 {
			return fault.Invalid(l.parameter, "%s: %q is not a word of at most 64 letters and digits", l.parameter, l.words[i])
		}
	}
	for i, given := range p.Accounts {
		channel, id, ok := strings.Cut(given, ":")
		if !ok {
			return fault.Invalid("accounts", "accounts: %q must be channel:account, such as telegram:12345 or email:mei@example.com", given)
		}
		channel, id, err := Account(channel, id, "accounts")
		if err != nil {
			return err
		}
		p.Accounts[i] = channel + ":" + id
	}
	return nil
}

// Write makes a person, or replaces all that was known of one. It fails with
// fault.Conflict when an account is another person's: which of the two it is
// must not be a guess.
func Write(ctx context.Context, tx postgres.DB, p Person, now time.Time) (Person, error) {
	if err := p.check(); err != nil {
		return Person{}, err
	}
	args := pgx.StrictNamedArgs{"id": p.PersonID, "accounts": append([]string{}, p.Accounts...)}
	taken, err := postgres.All[struct{ PersonID, Account string }](ctx, tx, personTakenSQL, args)
	switch {
	case err != nil:
		return Person{}, fmt.Errorf("look for accounts: %w", err)
	case len(taken) > 0:
		return Person{}, fault.New(fault.Conflict, "%s is an account of %s; take it from there first", taken[0].Account, taken[0].PersonID)
	}
	args["display_name"], args["now"] = p.DisplayName, now
	args["roles"], args["project_ids"] = append([]string{}, p.Roles...), append([]string{}, p.ProjectIDs...)
	if _, err := postgres.Exec(ctx, tx, personWriteSQL, args); err != nil {
		return Person{}, fmt.Errorf("write person: %w", err)
	}
	p.UpdatedAt = now
	return p, nil
}

// List gives all people, or the one that is named.
func List(ctx context.Context, db postgres.DB, personID string) ([]Person, error) {
	list, err := postgres.All[Person](ctx, db, personListSQL, pgx.StrictNamedArgs{"id": personID})
	if err != nil {
		return nil, fmt.Errorf("list people: %w", err)
	}
	return list, nil
}

// Remove forgets a person with all accounts, and reports whether there was one.
func Remove(ctx context.Context, db postgres.DB, personID string) (bool, error) {
	n, err := postgres.Exec(ctx, db, personRemoveSQL, pgx.StrictNamedArgs{"id": personID})
	if err != nil {
		return false, fmt.Errorf("remove person: %w", err)
	}
	return n > 0, nil
}
