-- The generic cell rate algorithm: one time, at which the bucket of B units would be empty, in us and 2^-20 us. A unit
-- takes the interval I (Ius, Ifr) to drain. span: the whole us in which a full bucket drains, by the rules of the last admission.
local FORMAT, SIZE, TAG, PARTS = '>c8I8I4I8', 28, 'tg.gcra2', 1048576

local function open(key, B, Ius, Ifr)
  local tus, tfr, span = 0, 0, 0
  local state = call('GETRANGE', key, 0, SIZE - 1)
  if #state == SIZE and string.sub(state, 1, 8) == TAG then
    local _
    _, tus, tfr, span = struct.unpack(FORMAT, state)
  end
  local function times(m)                     -- m intervals
    local fr = m * Ifr
    return m * Ius + math.floor(fr / PARTS), fr % PARTS
  end
  local sus, sfr = times(B)
  -- Before this the bucket can not have been so full: the clock ran back. Nothing is given until it returns.
  local first = tus + (tfr > 0 and 1 or 0) - math.max(sus, span)
  local back = now < first
  if back then eff = math.max(eff, first) end

  local self = {}
  local function base()
    if tus >= eff then return tus, tfr end
    return eff, 0
  end
  function self.wait(m)
    local us, fr = base()
    local mus, mfr = times(m)
    us, fr = us + mus - eff - sus, fr + mfr - sfr
    us, fr = us + math.floor(fr / PARTS), fr % PARTS
    return math.max(back and 1 or 0, us + (fr > 0 and 1 or 0))
  end
  function self.free()
    if B == 0 or back then return 0 end
    local us, fr = base()
    local m = math.floor(((sus - us + eff) + (sfr - fr) / PARTS) / (Ius + Ifr / PARTS))
    m = math.max(0, math.min(B, m))           -- right but for the double's last digits
    while m > 0 and self.wait(m) > 0 do m = m - 1 end
    while m < B and self.wait(m + 1) == 0 do m = m + 1 end
    return m
  end
  function self.take(g)
    local us, fr = base()
    local gus, gfr = times(g)
    tus, tfr = us + gus + math.floor((fr + gfr) / PARTS), (fr + gfr) % PARTS
    call('SETRANGE', key, 0, struct.pack(FORMAT, TAG, tus, tfr, sus))
    expire(key, tus + 1)
  end
  return self
end
