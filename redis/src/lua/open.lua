-- KEYS: one state for each limit. ARGV[1], packed, for each argument costs the server as much as a part of a command: mode,
-- report, whether a time is given (a byte each), cost, hold (us), the time given (us), then three figures for each key.
-- A store defines `open(key, a, b, c)`: an object with
--   wait(m)  how long until m more units fit, 0 if they fit now; m is at most the limit
--   free()   units that fit now
--   take(g)  records g units
-- and raises `eff`, the time judged, so that no key sees it run back.
local TAKE, PART, PEEK = 0, 1, 2
local NOTHING, AHEAD, FIGURES = 0, 1, 2
local call = redis.call
local mode, report, given, cost, hold, now, limit, window = struct.unpack('>BBBI8I8I8I8I8', ARGV[1])
if given == 0 then                            -- read once: TIME runs on inside a script
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local eff = now
