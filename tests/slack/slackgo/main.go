// A bot on slack-go that does what ours does, one step after the other; the test drives the fake and reads stdout.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

func say(word string, more map[string]any) {
	if more == nil {
		more = map[string]any{}
	}
	more["word"] = word
	line, _ := json.Marshal(more)
	fmt.Println(string(line))
}

func must(err error) {
	if err != nil {
		say("error", map[string]any{"message": err.Error()})
		os.Exit(1)
	}
}

func mentioned(api *slack.Client, e *slackevents.AppMentionEvent) {
	_, ts, err := api.PostMessage(e.Channel, slack.MsgOptionText("first", false), slack.MsgOptionTS(e.TimeStamp),
		slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "k", EventPayload: map[string]any{"k": "one"}}))
	must(err)
	_, _, _, err = api.UpdateMessage(e.Channel, ts, slack.MsgOptionText("second", false))
	must(err)
	must(api.AddReaction("eyes", slack.NewRefToMessage(e.Channel, e.TimeStamp)))
	_, err = api.UploadFile(slack.UploadFileParameters{Channel: e.Channel, ThreadTimestamp: e.TimeStamp, Filename: "a.csv",
		Reader: strings.NewReader("a,b\n"), FileSize: 4})
	must(err)
	replies, _, _, err := api.GetConversationReplies(&slack.GetConversationRepliesParameters{ChannelID: e.Channel, Timestamp: e.TimeStamp,
		Limit: 100, IncludeAllMetadata: true})
	must(err)
	user, err := api.GetUserInfo(e.User)
	must(err)
	say("mentioned", map[string]any{"text": e.Text, "replies": len(replies), "key": replies[1].Metadata.EventPayload["k"],
		"name": user.Profile.DisplayName})
}

func event(api *slack.Client, e slackevents.EventsAPIEvent) {
	switch inner := e.InnerEvent.Data.(type) {
	case *slackevents.AppMentionEvent:
		mentioned(api, inner)
	case *slackevents.MessageEvent:
		say("message", map[string]any{"text": inner.Text, "channel_type": inner.ChannelType})
	case *slackevents.ReactionAddedEvent:
		say("reaction", map[string]any{"reaction": inner.Reaction, "item": inner.Item.Timestamp})
	}
}

func main() {
	url, bot, app := os.Args[1], os.Args[2], os.Args[3]
	api := slack.New(bot, slack.OptionAppLevelToken(app), slack.OptionAPIURL(url+"/api/"))
	who, err := api.AuthTest()
	must(err)
	say("up", map[string]any{"team": who.TeamID})
	client := socketmode.New(api)
	go func() { must(client.RunContext(context.Background())) }()
	go func() {
		buffer := make([]byte, 1)
		for {
			if _, err := os.Stdin.Read(buffer); err != nil {
				os.Exit(0)
			}
		}
	}()
	for e := range client.Events {
		switch e.Type {
		case socketmode.EventTypeEventsAPI:
			client.Ack(*e.Request)
			event(api, e.Data.(slackevents.EventsAPIEvent))
		case socketmode.EventTypeInteractive:
			client.Ack(*e.Request)
			pressed := e.Data.(slack.InteractionCallback).ActionCallback.BlockActions[0]
			say("pressed", map[string]any{"value": pressed.Value, "action": pressed.ActionID})
		case socketmode.EventTypeConnected:
			say("connected", nil)
		}
	}
}
