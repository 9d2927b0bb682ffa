-- Buckets counted whole, the oldest too although part of it has left the window: never above L in any window, and a
-- unit comes back up to one bucket late.
local function open(key, L, W, k)
  local width = math.ceil(W / k)
  local self = buckets(key, width, k)
  local function used()
    local counts, sum = self.turn(), 0
    for i = 0, k do sum = sum + counts[i] end
    return sum
  end
  function self.wait(m)
    local excess = used() + m - L
    if excess <= 0 then return 0 end
    for i = k, 0, -1 do
      excess = excess - self.counts[i]
      if excess <= 0 then return (self.newest - i + k + 1) * width - eff end
    end
  end
  function self.free() return math.max(0, L - used()) end
  return self
end
