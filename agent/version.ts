/** Version of the agent program, for people; what it can do is in `features`. */
export const AGENT_VERSION = '0.1.0';
