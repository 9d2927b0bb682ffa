-- The weighted estimate: the window before counts by the share of it still in view. In whole numbers a double holds: time in
-- units of u us, rounded so that the share is never too small.
local function open(key, L, W)
  local u = math.max(1, math.ceil(L * W / 4503599627370496))
  local whole = math.ceil(W / u)
  local self = buckets(key, W, 1)
  -- The first unit of a window at which `before` weighs at most `room`.
  local function eased(before, room)
    if before <= room then return 0 end
    return whole - math.floor(room * whole / before)
  end
  function self.wait(m)
    local counts = self.turn()
    local start = self.newest * W
    local room = L - counts[0] - m
    if room >= 0 then
      local first = eased(counts[1], room)
      if math.floor((eff - start) / u) >= first then return 0 end
      if first * u < W then return start + first * u - eff end
    end
    -- In the next window this one weighs; in the one after that nothing does.
    return start + W + math.min(W, eased(counts[0], L - m) * u) - eff
  end
  function self.free()
    local counts = self.turn()
    local weight = whole - math.floor((eff - self.newest * W) / u)
    return math.max(0, L - counts[0] - math.ceil(counts[1] * weight / whole))
  end
  return self
end
