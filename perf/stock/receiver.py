"""A minimal receiver of webhooks. It prints its port, and then takes lines on standard input. `reset` sets the counts to 0 and is answered
with `{}`. `wait N SECONDS` is answered with JSON when N requests have arrived since the reset, or the time is over: their number, the
seconds from the first to the last, the most connections that were open at once, and the body of the last request."""

import asyncio
import json
import sys
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class State:
    def __init__(self):
        self.open = 0
        self.reset()

    def reset(self):
        self.count, self.first, self.last, self.most, self.body = 0, 0.0, 0.0, self.open, b""


state = State()


class Receiver(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.got = transport, b""
        state.open += 1
        state.most = max(state.most, state.open)

    def connection_lost(self, _):
        state.open -= 1

    def data_received(self, data):
        self.got += data
        while (end := self.got.find(b"\r\n\r\n")) >= 0:
            head = self.got[:end].lower()
            at = head.find(b"content-length:")
            size = int(head[at + 15:].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.got) < end + 4 + size:
                return
            state.body = self.got[end + 4:end + 4 + size]
            self.got = self.got[end + 4 + size:]
            state.last = time.perf_counter()
            state.first = state.first or state.last
            state.count += 1
            self.transport.write(ANSWER)


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Receiver, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    while words := (await loop.run_in_executor(None, sys.stdin.readline)).split():
        if words[0] == "reset":
            state.reset()
            print("{}", flush=True)
            continue
        end = time.perf_counter() + float(words[2])
        while state.count < int(words[1]) and time.perf_counter() < end:
            await asyncio.sleep(0.01)
        print(json.dumps({"count": state.count, "seconds": state.last - state.first, "most": state.most, "body": state.body.decode()}), flush=True)


asyncio.run(main())
