-- The everyday call on a ring, whose string ring.lua explains: one limit, one unit, all or nothing, a ring of just the limit, a
-- block with room. Two commands refuse, three admit, and no function is made. Any other call is judged further down, by the
-- same rules.
local first = call('GETRANGE', KEYS[1], '0', '175')
if cost == 1 and mode == TAKE and report ~= FIGURES and not KEYS[2] and #first >= 56 then
  local tag, C, mark, n, last, clock, oldest = struct.unpack('>c8I8I8I8I8I8I8', first)
  if tag == 'tg.ring2' and C == limit then
    if clock > eff then eff = clock end
    local wait = n < C and 0 or oldest + window - eff
    if wait > 0 then
      if report == NOTHING then return -wait end
      return struct.pack('>I8I8I8I8I8', 0, wait, eff, 0, wait)
    end
    local record = eff + hold
    if last > record then record = last end
    n = n + 1
    if (C <= 16 or n % 16 > 0) and record + window <= mark then
      local filling = n <= C and n <= 16
      local block = string.sub(first, filling and 49 or 57) .. struct.pack('>I8', record)
      call('SETRANGE', KEYS[1], '24', struct.pack('>I8I8I8', n, record, eff) .. block)
      if report == NOTHING then return 1 end
      wait = n < C and 0 or struct.unpack('>I8', block) + window - eff
      return struct.pack('>I8I8I8I8I8', 1, 0, eff, 0, wait > 0 and wait or 0)
    end
  end
end
