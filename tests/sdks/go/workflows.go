package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// State is what a run hands to the next one and, at the end of the chain, to its caller.
type State struct {
	Round    int      `json:"round"`
	Words    []string `json:"words"`
	Total    int      `json:"total"`
	Attempts int      `json:"attempts"`
	Shout    string   `json:"shout"`
}

// Stumble fails twice; the third attempt gives its own number.
func Stumble(ctx context.Context) (int, error) {
	attempt := int(activity.GetInfo(ctx).Attempt)
	if attempt < 3 {
		return 0, temporal.NewApplicationError(fmt.Sprintf("stumbled %d", attempt), "Stumble")
	}
	return attempt, nil
}

// Shout gives the word in capitals.
func Shout(_ workflow.Context, word string) (string, error) {
	return strings.ToUpper(word), nil
}

// Tour listens until it is told to finish, then does everything else that a workflow does.
func Tour(ctx workflow.Context, state State) (State, error) {
	if state.Round > 1 {
		return state, nil
	}
	if err := listen(ctx, &state); err != nil {
		return state, err
	}
	activityOptions := workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    50 * time.Millisecond,
			BackoffCoefficient: 1,
			MaximumAttempts:    5,
		},
	}
	stumbled := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, activityOptions), Stumble)
	if err := stumbled.Get(ctx, &state.Attempts); err != nil {
		return state, err
	}
	if err := workflow.Sleep(ctx, 50*time.Millisecond); err != nil {
		return state, err
	}
	childOptions := workflow.ChildWorkflowOptions{WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID + "-shout"}
	shouted := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, childOptions), Shout, state.Words[0])
	if err := shouted.Get(ctx, &state.Shout); err != nil {
		return state, err
	}
	state.Round++
	return state, workflow.NewContinueAsNewError(ctx, Tour, state)
}

func listen(ctx workflow.Context, state *State) error {
	if err := workflow.SetQueryHandler(ctx, "words", func() ([]string, error) { return state.Words, nil }); err != nil {
		return err
	}
	add := func(_ workflow.Context, amount int) (int, error) {
		state.Total += amount
		return state.Total, nil
	}
	validate := func(_ workflow.Context, amount int) error {
		if amount < 0 {
			return temporal.NewApplicationError("negative amount", "Negative")
		}
		return nil
	}
	if err := workflow.SetUpdateHandlerWithOptions(
		ctx, "add", add, workflow.UpdateHandlerOptions{Validator: validate},
	); err != nil {
		return err
	}
	finished := false
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(workflow.GetSignalChannel(ctx, "say"), func(channel workflow.ReceiveChannel, _ bool) {
		var word string
		channel.Receive(ctx, &word)
		state.Words = append(state.Words, word)
	})
	selector.AddReceive(workflow.GetSignalChannel(ctx, "finish"), func(channel workflow.ReceiveChannel, _ bool) {
		channel.Receive(ctx, nil)
		finished = true
	})
	for !finished {
		selector.Select(ctx)
	}
	return nil
}
