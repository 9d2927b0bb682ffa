-- The exact log in one string: a header, then the times of the last C units, unit k at slot k % C.
-- C: capacity, the largest limit so far; n: units ever admitted; last: the newest record; clock: the newest time judged;
-- mark: when the key dies. Records never decrease, so the unit L - m + 1 from the end decides whether m more fit.
local FORMAT, HEADER, TAG = '>c8I8I8I8I8I8', 48, 'tg.ring1'

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
  function self.take(g)
    if L > C then                             -- the limit was raised: lay the records out again, oldest first
      if n >= C then
        local turn = (n % C) * 8
        local old = redis.call('GETRANGE', key, HEADER, HEADER + C * 8 - 1)
        redis.call('SETRANGE', key, HEADER, string.sub(old, turn + 1) .. string.sub(old, 1, turn))
        n = C
      end
      C = L
    end
    last = math.max(eff + hold, last)
    local stamp, slot = struct.pack('>I8', last), n % C
    local here = math.min(g, C - slot)
    redis.call('SETRANGE', key, HEADER + slot * 8, string.rep(stamp, here))
    if here < g then redis.call('SETRANGE', key, HEADER, string.rep(stamp, g - here)) end
    n = n + g
    local renew = last + W > mark
    if renew then mark = last + 2 * W end
    redis.call('SETRANGE', key, 0, struct.pack(FORMAT, TAG, C, n, last, eff, mark))
    if renew then expire(key, mark) end
  end
  return self
end
