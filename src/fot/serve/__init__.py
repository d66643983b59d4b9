"""A server that speaks OpenAI's protocol and answers with a vote; the extra `serve` brings what it needs.

fot.serve.settings    Settings: what is fixed when the server starts
fot.serve.protocol    requests read, with every reason why one is refused or passed through
fot.serve.signs      does a chat want an answer that a vote can be taken on?
fot.serve.replies     answers, chunks and errors in OpenAI's shape
fot.serve.upstreams   the engines behind it, and whether they answer
fot.serve.admission   who runs when: a bounded queue, fair between clients
fot.serve.problems    one request at work: a session, its clients' patience, its end
fot.serve.passing     requests that go through untouched
fot.serve.live        Board: what all runs look like, for those who watch
fot.serve.guard       keys, hosts, limits, headers
fot.serve.gauges      figures for Prometheus
fot.serve.app         the routes
fot.serve.server      the sockets: time-outs and an orderly end
"""
