-- The textbook log: a sorted set with a member for each unit, scored by its time. A member is a sequence number, eight
-- bytes with the highest first, so that members of one time sort by number and the last member has the highest.
local CHUNK = 1000                            -- members added by one command: Lua's stack is bounded

local function open(key, L, W)
  local sequence = 0
  local newest = call('ZRANGE', key, -1, -1, 'WITHSCORES')
  if newest[1] then
    sequence = struct.unpack('>I8', newest[1])
    eff = math.max(eff, tonumber(newest[2]))
  end

  local self = {}
  function self.wait(m)
    local rank = m - L - 1                    -- from the end
    local unit = call('ZRANGE', key, rank, rank, 'WITHSCORES')
    return unit[2] and math.max(0, tonumber(unit[2]) + W - eff) or 0
  end
  function self.free()
    return math.max(0, L - call('ZCOUNT', key, string.format('(%.0f', eff - W), '+inf'))
  end
  function self.take(g)
    call('ZREMRANGEBYSCORE', key, '-inf', eff - W)
    local added = 0
    for first = 1, g, CHUNK do
      local members = {}
      for i = first, math.min(g, first + CHUNK - 1) do
        members[#members + 1] = eff
        members[#members + 1] = struct.pack('>I8', sequence + i)
      end
      added = added + call('ZADD', key, 'NX', unpack(members))
    end
    assert(added == g, 'a unit fell on a member that was there')
    expire(key, eff + W)
  end
  return self
end
