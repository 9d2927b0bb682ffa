-- Counts by bucket of time in one string: k + 1 of them, the newest first. Another width or number of buckets than the
-- stored one moves each count to the bucket of the latest time that its units can have had: never forgotten early.
local FORMAT, HEADER, TAG = '>c8I8I8I8I8I4', 44, 'tg.bkts1'

local function buckets(key, width, k)
  local old, old_width, newest, clock, mark = {}, width, 0, 0, 0
  local state = call('GET', key) or ''
  if #state >= HEADER and string.sub(state, 1, 8) == TAG then
    local _, last
    _, old_width, newest, clock, mark, last = struct.unpack(FORMAT, state)
    -- The figure is not believed: of another length, the string is not ours.
    assert(#state == HEADER + (last + 1) * 4, 'not the counts of a limit')
    old = { struct.unpack('>' .. string.rep('I4', last + 1), string.sub(state, HEADER + 1)) }
    old[last + 2] = nil                       -- struct's position after the last
    eff = math.max(eff, clock)
  end

  local self = {}
  -- The counts as seen at `eff`: [0] is the newest bucket's. Called once all keys have been opened.
  function self.turn()
    if self.counts then return self.counts end
    self.newest, self.counts = math.floor(eff / width), {}
    for i = 0, k do self.counts[i] = 0 end
    for i, count in ipairs(old) do
      local latest = math.min(clock, (newest - i + 2) * old_width - 1)
      local age = self.newest - math.floor(latest / width)
      if age <= k then self.counts[age] = self.counts[age] + count end
    end
    return self.counts
  end
  function self.take(g)
    local counts = self.turn()
    counts[0] = counts[0] + g
    local gone = (self.newest + k + 1) * width
    local renew = gone > mark
    if renew then mark = gone + (k - 1) * width end
    call('SETRANGE', key, 0, struct.pack(FORMAT, TAG, width, self.newest, eff, mark, k)
      .. struct.pack('>' .. string.rep('I4', k + 1), unpack(counts, 0, k)))
    if renew then expire(key, mark) end
  end
  return self
end
