-- The exact log in one string: a header, then the times of the last C units, unit k at slot k % C.
-- C: capacity, the largest limit so far; n: units ever admitted; last: the newest record; clock: the newest time judged;
-- mark: when the key dies. Records never decrease, so the unit L - m + 1 from the end decides whether m more fit.
-- The string grows by doubling, made anew at its exact size: the server's own growth would leave up to half of it unused.
local FORMAT, HEADER, TAG = '>c8I8I8I8I8I8', 48, 'tg.ring1'

-- A stamp n times. string.rep copies byte by byte; joining strings copies blocks.
local function times(stamp, n)
  local block, all = stamp, ''
  while n > 64 do
    if n % 2 == 1 then all = all .. block end
    block, n = block .. block, math.floor(n / 2)
  end
  return all .. string.rep(block, n)
end

local function open(key, L, W)
  local C, n, last, clock, mark = L, 0, 0, 0, 0
  local header = redis.call('GETRANGE', key, 0, HEADER - 1)
  if #header == HEADER and string.sub(header, 1, 8) == TAG then
    local _
    _, C, n, last, clock, mark = struct.unpack(FORMAT, header)
    eff = math.max(eff, clock)
  end

  local function at(k)
    local slot = HEADER + (k % C) * 8
    return (struct.unpack('>I8', redis.call('GETRANGE', key, slot, slot + 7)))
  end

  local self = {}
  function self.wait(m)
    local k = n + m - L - 1
    if k < 0 or k < n - C then return 0 end   -- never admitted, or held no longer: it had left when C sufficed
    return math.max(0, at(k) + W - eff)
  end
  function self.free()
    local lo, hi = math.max(0, n - math.min(L, C)), n
    while lo < hi do                          -- the first record still inside the window
      local mid = math.floor((lo + hi) / 2)
      if at(mid) + W > eff then hi = mid else lo = mid + 1 end
    end
    return L - (n - lo)
  end
  -- Slots that the string has while it holds n units and has never been full.
  local function room(units)
    local slots = 4
    while slots < units do slots = slots * 2 end
    return units == 0 and 0 or math.min(slots, C)
  end
  -- Makes the string anew, with slots for g more: the records oldest first, from slot 0.
  local function grow(g)
    local held = math.min(n, C)
    local turn = (n - held) % C * 8
    local old = redis.call('GETRANGE', key, HEADER, HEADER + held * 8 - 1)
    n, C = held, math.max(C, L)               -- never smaller: records above a lowered limit still count if it is raised
    redis.call('DEL', key)
    redis.call('SETRANGE', key, HEADER + room(math.min(n + g, C)) * 8 - 1, '\0')
    if n > 0 then redis.call('SETRANGE', key, HEADER, string.sub(old, turn + 1) .. string.sub(old, 1, turn)) end
  end
  function self.take(g)
    local renew = L > C or n < C and n + g > room(n)
    if renew then grow(g) end                 -- the new key has no expiry yet
    last = math.max(eff + hold, last)
    local stamp, slot = struct.pack('>I8', last), n % C
    local here = math.min(g, C - slot)
    redis.call('SETRANGE', key, HEADER + slot * 8, times(stamp, here))
    if here < g then redis.call('SETRANGE', key, HEADER, times(stamp, g - here)) end
    n = n + g
    renew = renew or last + W > mark
    if renew then mark = last + 2 * W end
    redis.call('SETRANGE', key, 0, struct.pack(FORMAT, TAG, C, n, last, eff, mark))
    if renew then expire(key, mark) end
  end
  return self
end
