-- KEYS: one state for each limit. ARGV: mode, cost, report, hold (us), now (us; empty: the server's clock), then three
-- figures for each key. A store defines `open(key, a, b, c)`: an object with
--   wait(m)  how long until m more units fit, 0 if they fit now; m is at most the limit
--   free()   units that fit now
--   take(g)  records g units
-- and raises `eff`, the time judged, so that no key sees it run back.
local TAKE, PART, PEEK = 0, 1, 2
local NOTHING, AHEAD, FIGURES = 0, 1, 2
local mode, cost, report, hold = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local given = tonumber(ARGV[5])
local now = given
if not now then                               -- read once: TIME runs on inside a script
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local eff = now

-- Lets the key die once the server's clock passes `at`. With a time given, which need not be near the clock: in an hour.
local function expire(key, at)
  if given then redis.call('PEXPIRE', key, 3600000) else redis.call('PEXPIREAT', key, math.ceil(at / 1000) + 1) end
end
