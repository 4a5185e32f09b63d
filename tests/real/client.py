"""The official Python client: makes the calls of a file on a server and prints the answers.

client.py CALLS (--url URL | -- COMMAND ARGUMENTS...), where CALLS is a JSON array of [tool, arguments].
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def answers(streams, calls):
    """The catalog's names, then what each call was answered with."""
    async with ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        found = [sorted(tool.name for tool in (await session.list_tools()).tools)]
        for tool, arguments in calls:
            try:
                result = await session.call_tool(tool, arguments)
                found.append(result.model_dump(mode="json", by_alias=True, exclude_none=True))
            except MCPError as error:
                found.append({"code": error.error.code, "message": error.error.message})
        return found


async def main(file, way, *target):
    with open(file, encoding="utf-8") as text:
        calls = json.load(text)
    if way == "--url":
        opened = streamable_http_client(target[0])
    else:
        opened = stdio_client(StdioServerParameters(command=target[0], args=list(target[1:]), env=dict(os.environ)))
    async with opened as streams:
        print(json.dumps(await answers(streams, calls)))


asyncio.run(main(*sys.argv[1:]))
