"""A Slack on the loopback for tests: Web API, files, Socket Mode, HTTP events, and every fault that real ones show.

Strict: an argument that Slack does not know, JSON where it wants a form, a call without its scope, a block over a documented limit are
refused as Slack refuses them, and noted in `complaints`, which every test expects to be empty. Stdlib only. Every public method is
control: tests call them from their own thread; POST /control/<method> with a JSON object of arguments does the same for other languages.

    limits    what Slack documents: methods and their arguments, scopes, sizes of blocks
    state     all that there is; waiting for it to change
    sockets   Socket Mode: links, envelopes, acknowledgements, repeats
    people    what people do, as events
    faults    what goes wrong when a test wants it
    streams   messages that grow
    files     uploads, shares, downloads
    web       the Web API
    server    one HTTP server for all of it"""
from .server import FakeSlack
from .sockets import Link

__all__ = ["FakeSlack", "Link"]
