module sandbook/tests/slackgo

go 1.26

require github.com/slack-go/slack v0.36.0

require github.com/gorilla/websocket v1.5.3 // indirect
